#include "sim/step/servers/delayed_updates.h"

#include <cmath>

#include "sim/step/servers/placement.h"

namespace reckon {

std::optional<DelayedLength> delayed_length(const PlannedWorkload& job, const StepEstimate& step) {
  if (job.strategy.synchronous() || !job.convergence) return std::nullopt;
  const double batch = samples_of_worker(job);
  return DelayedLength{.samples = delayed_samples_to_target(*job.convergence, batch, step.delay).v,
                       .undelayed = delayed_samples_to_target(*job.convergence, batch, 0).v,
                       .synchronous = job.total_samples,
                       .global_batch = double(job.global_batch)};
}

double samples_factor_of(const std::optional<DelayedLength>& length) {
  return length && length->synchronous > 0 ? length->samples / length->synchronous : 1;
}

std::int64_t delayed_steps(const PlannedWorkload& job, const StepEstimate& step) {
  const double longer = samples_factor_of(delayed_length(job, step));
  return longer == 1 ? job.steps : std::int64_t(std::ceil(double(job.steps) * longer));
}

}  // namespace reckon
