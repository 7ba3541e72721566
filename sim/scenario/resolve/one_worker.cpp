#include "sim/scenario/resolve/one_worker.h"

#include <algorithm>

namespace reckon {

std::optional<Plan> one_worker(const Plan& plan) {
  Plan alone = plan_of_job(plan, 0);
  PlannedWorkload& job = alone.only_job();
  if (job.strategy.layout.replica() > 1 || job.strategy.layout.expert > 1) return std::nullopt;
  PlannedStrategy single;
  single.accelerators_per_worker = std::min(job.strategy.accelerators_per_worker, 1);
  single.layout.recompute = job.strategy.layout.recompute;
  single.layout.micro_batch = job.strategy.layout.micro_batch;
  job.strategy = single;
  job.global_batch = job.strategy.layout.micro_batch;
  return alone;
}

}  // namespace reckon
