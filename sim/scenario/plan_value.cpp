#include "sim/scenario/plan.h"

// What a finished Plan answers about itself; needs nothing of how it was made.
namespace reckon {

const PlannedPool* Plan::pool_with(Role role) const {
  for (const PlannedPool& pool : pools)
    if (pool.role == role) return &pool;
  return role == Role::worker ? pool_with(Role::chief) : nullptr;
}

Plan plan_of_job(const Plan& plan, std::size_t job) {
  Plan alone = plan;
  alone.jobs = {plan.jobs[job]};
  alone.jobs.front().same_as.reset();
  return alone;
}

Optimizer default_optimizer(SampleUnit unit) {
  return unit == SampleUnit::sequence ? Optimizer::adamw : Optimizer::sgd_momentum;
}

std::string_view to_text(Optimizer optimizer) {
  return optimizer == Optimizer::adamw ? "adamw" : "sgd";
}

}  // namespace reckon
