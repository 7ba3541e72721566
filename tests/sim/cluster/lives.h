#pragma once
#include "sim/cluster/life/life.h"
#include "support/plans.h"

// A job on a few nodes in round numbers: nodes are ready 100 s after the request, the job starts at
// once, 1,000 steps of 1 s, no checkpoints, nothing breaks. A test changes what it is about.
namespace reckon::test {

struct Case {
  Plan plan;
  JobPace pace;
  LifeOptions options;
  LifeResult run() const {
    return simulate_life(plan, request_of(plan.jobs.front(), pace), options);
  }
};

/// Those of the plan's jobs, in their order.
inline std::vector<JobRequest> requests_of(const Plan& plan, const std::vector<JobPace>& paces) {
  std::vector<JobRequest> requests;
  for (std::size_t k = 0; k < paces.size(); ++k)
    requests.push_back(request_of(plan.jobs[k], paces[k]));
  return requests;
}

inline Case round_case(int nodes = 1, int accelerators_per_node = 1) {
  Case c;
  c.plan.name = "round";
  c.plan.pools.push_back(round_pool("workers", Role::worker, nodes, accelerators_per_node));
  PlannedWorkload job;
  job.name = "job";
  job.steps = 1000;
  job.strategy.kind = StrategyKind::multi_worker_mirrored;
  job.strategy.workers = nodes;
  job.strategy.accelerators_per_worker = accelerators_per_node;
  c.plan.jobs.push_back(job);
  set_rules(c.plan);
  c.pace.steps = 1000;
  c.pace.step_by_workers.assign(std::size_t(nodes) + 1, Seconds{1});
  return c;
}

/// The workers' pool scales between min and max, and starts with `initial` nodes.
inline void autoscale(Case& c, int initial, int min, int max) {
  PlannedPool& pool = c.plan.pools[0];
  pool.autoscaling = true;
  pool.nodes_initial = initial;
  pool.nodes_min = min;
  pool.nodes_max = max;
}

/// Node k of the spot pool goes at the k-th list's times.
inline void reclaim_at(Case& c, std::vector<std::vector<Seconds>> trace, Seconds notice = {}) {
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.reclaim.law = TraceReclaim{};
  c.plan.reclaim.trace = std::move(trace);
  c.plan.reclaim.notice = notice;
}

/// A save of `save` after every `interval` of work, read back in `restore`.
inline void checkpoints(Case& c, Seconds interval, Seconds save, Seconds restore = {}) {
  c.pace.checkpoint_interval = interval;
  c.pace.checkpoint_save = save;
  c.pace.checkpoint_restore = restore;
}

inline double finish_seconds(const LifeResult& life) {
  return double(life.finish.time_since_epoch().count()) / 1e9;
}
/// Of the whole job: accelerator-seconds.
inline double badput(const LifeResult& life, Badput cause) {
  return double(life.badput[std::size_t(cause)].n) / 1e9;
}
inline double goodput(const LifeResult& life) { return double(life.goodput.n) / 1e9; }
inline std::int64_t count(const LifeResult& life, Interruption cause) {
  return life.interruptions[std::size_t(cause)];
}
inline double cost(const LifeResult& life, CostPart part) {
  return to_usd(life.cost[std::size_t(part)]).v;
}

}  // namespace reckon::test
