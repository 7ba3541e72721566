#include "executor/worker/passes.h"

#include <fmt/format.h>

#include <cmath>

namespace reckon::worker {

std::string why_other_epochs(const PlannedWorkload& job, const DataSource& source,
                             const std::string& where) {
  constexpr double kSame = 0.01;  // of the samples: what few files more or less make
  const auto holds = double(source.samples()), planned = job.dataset.samples.value.v;
  if (job.epochs <= 0 || std::abs(holds - planned) <= kSame * planned) return "";
  const std::string what = fmt::format(
      "{} holds {} samples, the plan's dataset {:.0f}: its {:.4g} epoch{} are {:.4g} passes over "
      "them",
      where, source.samples(), planned, job.epochs, job.epochs == 1 ? "" : "s",
      job.total_samples / holds);
  if (job.dataset.name == kGivenDataset)
    return fmt::format("{} (--set workload.dataset.samples={})", what, source.samples());
  return fmt::format("{} (workload: {{dataset: {{samples: {}, bytes_per_sample: {:.0f}B}}}})", what,
                     source.samples(), job.dataset.bytes_per_sample.value.v);
}

}  // namespace reckon::worker
