#include "sim/scenario/plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/base/check.h"

// What a finished Plan answers about itself; needs nothing of how it was made.
namespace reckon {

const PlannedPool* PlannedCluster::pool_with(Role role) const {
  for (const PlannedPool& pool : pools)
    if (pool.role == role && !pool.fallback_for) return &pool;
  return role == Role::worker ? pool_with(Role::chief) : nullptr;
}

PlannedWorkload& PlannedTraining::only_job() {
  RECKON_CHECK(jobs.size() == 1);
  return jobs.front();
}

const PlannedWorkload& PlannedTraining::only_job() const {
  RECKON_CHECK(jobs.size() == 1);
  return jobs.front();
}

std::vector<const PlannedPool*> gang_pools(const PlannedCluster& cluster) {
  std::vector<const PlannedPool*> pools;
  for (const Role role : {Role::chief, Role::worker})
    for (const PlannedPool& pool : cluster.pools)
      if (pool.role == role && !pool.fallback_for) pools.push_back(&pool);
  return pools;
}

bool computes(const PlannedCluster& cluster, const PlannedPool& pool) {
  if (pool.role != Role::chief) return pool.role == Role::worker;
  return std::ranges::none_of(cluster.pools, [&](const PlannedPool& workers) {
    return workers.role == Role::worker &&
           (workers.slice.has_value() > pool.slice.has_value() ||
            workers.accelerator.has_value() != pool.accelerator.has_value());
  });
}

std::vector<const PlannedPool*> computing_pools(const PlannedCluster& cluster) {
  std::vector<const PlannedPool*> pools = gang_pools(cluster);
  std::erase_if(pools, [&](const PlannedPool* pool) { return !computes(cluster, *pool); });
  RECKON_CHECK(!pools.empty());
  return pools;
}

Plan plan_of_job(const Plan& plan, std::size_t job) {
  Plan alone = plan;
  alone.jobs = {plan.jobs[job]};
  alone.only_job().same_as.reset();
  if (const auto residual = std::exchange(alone.only_job().residual, std::nullopt)) {
    alone.framework.memory_mean = residual->memory_mean;
    alone.framework.memory_deviation = residual->memory_deviation;
    for (PlannedPool& pool : alone.pools)
      if (residual->step_spread && pool.accelerator && computes(alone, pool))
        pool.efficiency.step_spread = *residual->step_spread;
  }
  return alone;
}

namespace {

/// More than any plan may have stays more: what is beyond 64 bits is no number of steps either.
std::int64_t whole_steps(double steps) {
  constexpr double kBeyondAny = 1e18;
  return static_cast<std::int64_t>(std::min(std::ceil(steps), kBeyondAny));
}

}  // namespace

Layout layout_of(const PlannedWorkload& job) {
  Layout l = job.strategy.layout;
  // At least one: a copy that is too large is told by its rule.
  l.data = static_cast<int>(std::max<std::int64_t>(1, job.strategy.accelerators() / l.replica()));
  l.micro_batches =
      std::max<std::int64_t>(1, job.global_batch / (std::int64_t{l.micro_batch} * l.data));
  return l;
}

void change_batch(PlannedWorkload& job, std::int64_t global_batch) {
  constexpr double kRounding = 1e-9;
  job.global_batch = global_batch;
  if (job.convergence) job.total_samples = samples_to_target(*job.convergence, global_batch).v;
  job.steps = whole_steps(job.total_samples / double(global_batch) - kRounding);
  if (!job.evaluate_every_epochs) return;
  const double epochs = job.total_samples / job.dataset.samples.value.v;
  job.evaluations = std::min(double(job.steps),  // one behind a step
                             std::ceil(epochs / *job.evaluate_every_epochs - kRounding));
}

std::int64_t evaluations_after(const PlannedWorkload& job, std::int64_t steps_done) {
  if (!job.evaluate_every_epochs || steps_done <= 0) return 0;
  constexpr double kRounding = 1e-9;
  const double each = *job.evaluate_every_epochs * job.dataset.samples.value.v;
  const auto ended = [&](std::int64_t steps) {
    return static_cast<std::int64_t>(double(steps) * double(job.global_batch) / each + kRounding);
  };
  const bool last = steps_done >= job.steps && ended(steps_done) == ended(steps_done - 1);
  return ended(steps_done) + (last ? 1 : 0);
}

Optimizer default_optimizer(SampleUnit unit) {
  return unit == SampleUnit::sequence ? Optimizer::adamw : Optimizer::sgd_momentum;
}

}  // namespace reckon
