#include "exchange/frameworks/frameworks.h"

#include <fmt/format.h>

#include <algorithm>

#include "exchange/frameworks/writers.h"

namespace reckon {
namespace {

struct Writer {
  Framework framework;
  const char* version;
  LauncherFile (*write)(const LaunchLayout&, Refusals&);
  bool on_tpus = false;
};
constexpr std::array kWriters{
    Writer{Framework::torchtitan, frameworks::kTorchtitanVersion, frameworks::torchtitan::write},
    Writer{Framework::megatron, frameworks::kMegatronVersion, frameworks::megatron::write},
    Writer{Framework::deepspeed, frameworks::kDeepspeedVersion, frameworks::deepspeed::write},
    Writer{Framework::accelerate, frameworks::kAccelerateVersion, frameworks::accelerate::write},
    Writer{Framework::maxtext, frameworks::kMaxtextVersion, frameworks::maxtext::write, true}};

}  // namespace

Expected<LauncherFile> launcher_file(Framework framework, const LaunchLayout& layout,
                                     const Places& places) {
  const auto* writer = std::ranges::find(kWriters, framework, &Writer::framework);
  Refusals refused(writer->version, places, layout.job->path);
  if (layout.is_tpu() && !writer->on_tpus) {  // what else it lacks is of no use
    frameworks::refuse_tpus(refused, layout);
    return tl::unexpected(refused.take());
  }
  LauncherFile file = writer->write(layout, refused);
  if (!is_trained_here(layout.job->optimizer))
    refused.add("optimizer",
                fmt::format("optimizer {} in what reckon writes", to_text(layout.job->optimizer)),
                "optimizer: adamw or sgd; its own name in the file that you run");
  if (!refused.empty()) return tl::unexpected(refused.take());
  if (const auto evaluation = frameworks::evaluation_steps(*layout.job);
      evaluation && framework != Framework::megatron)
    file.left_to_program.push_back(
        fmt::format("an evaluation of {} batch{} every {} steps", evaluation->batches,
                    evaluation->batches == 1 ? "" : "es", evaluation->every));
  file.environment.insert(file.environment.end(), layout.nccl.begin(), layout.nccl.end());
  return file;
}

}  // namespace reckon
