#include "sim/scenario/own_program.h"

#include <algorithm>

namespace reckon {

void run_by_own_program(Plan& plan) {
  const bool tpus = std::ranges::any_of(
      plan.pools, [](const PlannedPool& pool) { return pool.slice.has_value(); });
  for (PlannedWorkload& job : plan.jobs) {
    if (job.strategy.accelerators_per_worker > 0 && !tpus) job.stack = kOwnDeviceStack;
    if (has_validation_set(job.data)) continue;
    job.evaluate_every_epochs.reset();
    job.evaluations = 0;
  }
}

std::string left_out_by_own_program(const Plan& plan) {
  for (const PlannedWorkload& job : plan.jobs)
    if (job.evaluations > 0 && !has_validation_set(job.data))
      return "workload.evaluation: workload.data names no validation set, so no evaluation passes "
             "are made and the run's forecast has none (data: {validation: PATH})";
  return "";
}

}  // namespace reckon
