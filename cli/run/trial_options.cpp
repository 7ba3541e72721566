#include "cli/run/trial_options.h"

#include <fmt/format.h>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"

namespace reckon::cli {
namespace {

Read dollars_per_hour(std::optional<double>& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto price = parse_price(text);
    if (!price) throw UsageError(fmt::format("--{}: {}", name, price.error()));
    if (price->currency != "USD" || price->amount < 0)
      throw UsageError(fmt::format("--{} takes dollars, such as '0.40 USD/h'", name));
    to = price->amount * 3600;
  };
}

Read time_limit(Seconds& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto limit = parse_duration(text);
    if (!limit || limit->count() <= 0)
      throw UsageError(fmt::format("--{} takes a duration, such as 10min", name));
    to = *limit;
  };
}

}  // namespace

std::vector<Option> TrialCommandOptions::declared() {
  constexpr std::int64_t kMost = 1'000'000'000, kMostLayouts = 20;
  return {{steps_text(), whole(steps, 1, kMost)},
          {{"container-command", "COMMAND",
            "training command to run by sh in place of reckon-worker (the scenario's container)"},
           text(program)},
          {{"progress", "REGEX",
            "regular expression of progress lines, with groups named step, seconds, milliseconds, "
            "steps_per_second, samples_per_second or loss (common formats)"},
           text(progress)},
          {{"timeout", "DURATION", "time limit of the whole sample (10min)"}, time_limit(timeout)},
          {batch_text(), whole(batch, 1, kMost)},
          {{"like-pool", "",
            "treat this machine as one of the plan's nodes (the default without accelerators)"},
           given(like_pool)},
          {{"price", "PRICE", "price of this machine, such as '0.40 USD/h'"},
           dollars_per_hour(usd_per_hour)},
          {{"layouts", "N",
            "run the N layouts that look best on the scenario's nodes, and compare their steps"},
           whole(layouts, 1, kMostLayouts)},
          sweep_option(),
          out_option(),
          format_option(),
          set_option(),
          layer_option(),
          seed_option(),
          replications_option(),
          engine_option(),
          catalog_option(),
          calibration_option(),
          threads_option()};
}

void TrialCommandOptions::check() const {
  if (files.size() > 1) throw UsageError("trial takes one scenario file");
  if (!layouts) return;
  if (!program.empty() || !progress.empty() || batch || like_pool || !sweeps.empty())
    throw UsageError(
        "--layouts runs reckon-worker as the scenario says: --container-command, --progress, "
        "--batch, --like-pool and --sweep are for a single process");
}

}  // namespace reckon::cli
