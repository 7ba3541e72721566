#include "cli/probe/probe_options.h"

#include <fmt/format.h>

#include <utility>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"

namespace reckon::cli {
namespace {

Read time_of_an_item(std::optional<Seconds>& to) {
  return [&to](const std::string& name, const std::string& text) {
    duration(to)(name, text);
    if (to->count() <= 0) throw UsageError(fmt::format("--{} must be more than 0", name));
  };
}

}  // namespace

std::vector<Option> ProbeOptions::declared() {
  constexpr std::int64_t kLargestBatch = 1 << 20, kLongest = 1 << 20, kMostProcesses = 64;
  return {
      {model_text(), text(model)},
      {batch_text(), whole(batch, 1, kLargestBatch)},
      {sequence_length_text(), whole(sequence_length, 1, kLongest)},
      {{"processes", "N", "number of local processes for the collectives"},
       whole(processes, 1, kMostProcesses)},
      {{"checkpoint-dir", "DIR", "checkpoint directory, to measure write with fsync and read"},
       text(checkpoint_dir)},
      {{"device", "NAME", "device to measure besides the CPUs: auto (a GPU if present), cpu, cuda"},
       word(device)},
      {{"item-time", "DURATION", "measuring time per item, without warm-up (300ms)"},
       time_of_an_item(item_time)},
      on_option(on),
      context_option(),
      space_option(),
      image_option(),
      pull_secret_option(),
      pending_option(pending),
      {steps_text(), whole(steps, 5, 1'000'000)},
      set_option(),
      catalog_option(),
      threads_option(),
      out_option(),
      format_option()};
}

void ProbeOptions::check() const {
  if (on == RunPlace::kubernetes) return;
  refuse_given(
      {{"context", !context.empty()},
       {"namespace", !name_space.empty()},
       {"image", !image.empty()},
       {"pull-secret", !pull_secret.empty()},
       {"pending", pending.has_value()},
       {"steps", steps.has_value()}},
      [](const char* name) { return fmt::format("--{} goes with --on kubernetes", name); });
  if (!files.empty()) throw UsageError("probe takes no file; it measures this machine");
}

}  // namespace reckon::cli
