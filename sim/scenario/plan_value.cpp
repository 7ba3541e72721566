#include "sim/scenario/plan.h"

#include <algorithm>
#include <cmath>

// What a finished Plan answers about itself; needs nothing of how it was made.
namespace reckon {

const PlannedPool* Plan::pool_with(Role role) const {
  for (const PlannedPool& pool : pools)
    if (pool.role == role && !pool.stands_in_for) return &pool;
  return role == Role::worker ? pool_with(Role::chief) : nullptr;
}

Plan plan_of_job(const Plan& plan, std::size_t job) {
  Plan alone = plan;
  alone.jobs = {plan.jobs[job]};
  alone.jobs.front().same_as.reset();
  return alone;
}

namespace {

/// More than any plan may have stays more: what is beyond 64 bits is no number of steps either.
std::int64_t whole_steps(double steps) {
  constexpr double kBeyondAny = 1e18;
  return static_cast<std::int64_t>(std::min(std::ceil(steps), kBeyondAny));
}

}  // namespace

void change_batch(PlannedWorkload& job, std::int64_t global_batch) {
  constexpr double kRounding = 1e-9;
  job.global_batch = global_batch;
  if (job.convergence) job.total_samples = samples_to_target(*job.convergence, global_batch).v;
  job.steps = whole_steps(job.total_samples / double(global_batch) - kRounding);
  if (!job.evaluate_every_epochs) return;
  const double epochs = job.total_samples / job.dataset.samples.value.v;
  job.evaluations = std::ceil(epochs / *job.evaluate_every_epochs - kRounding);
}

Optimizer default_optimizer(SampleUnit unit) {
  return unit == SampleUnit::sequence ? Optimizer::adamw : Optimizer::sgd_momentum;
}

std::string_view to_text(Optimizer optimizer) {
  return optimizer == Optimizer::adamw ? "adamw" : "sgd";
}

}  // namespace reckon
