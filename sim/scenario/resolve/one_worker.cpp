#include "sim/scenario/resolve/one_worker.h"

#include <algorithm>

namespace reckon {

std::optional<Plan> one_worker(const Plan& plan) {
  Plan alone = plan_of_job(plan, 0);
  PlannedWorkload& job = alone.jobs.front();
  if (job.strategy.replica() > 1 || job.strategy.expert > 1) return std::nullopt;
  PlannedStrategy single;
  single.accelerators_per_worker = std::min(job.strategy.accelerators_per_worker, 1);
  single.recompute = job.strategy.recompute;
  job.strategy = single;
  job.global_batch = job.batch_per_accelerator;
  return alone;
}

}  // namespace reckon
