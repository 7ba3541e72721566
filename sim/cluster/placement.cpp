#include "sim/cluster/placement.h"

#include <fmt/core.h>

#include <algorithm>

namespace reckon {
namespace {

int accelerators_on(const PlannedPool& pool) {
  if (pool.accelerators_per_node > 0) return pool.accelerators_per_node;
  return pool.slice ? pool.slice->chips : 0;
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

void place_workers(const Plan& plan, const PlannedStrategy& strategy, Placement& placement) {
  std::vector<std::size_t> order;
  for (const PlannedPool* pool : gang_pools(plan))
    order.push_back(static_cast<std::size_t>(pool - plan.pools.data()));
  int node_total = 0;
  for (const std::size_t p : order) node_total += node_limit(plan, plan.pools[p]);
  int left = strategy.workers;
  for (const std::size_t p : order) {
    const PlannedPool& pool = plan.pools[p];
    PoolShare& share = placement.pools[p];
    const int limit = node_limit(plan, pool);
    const int wanted = strategy.accelerators_per_worker;
    const int there = accelerators_on(pool);
    if (wanted == 0) {
      share.workers_per_node = std::max(1, ceil_div(strategy.workers, std::max(node_total, 1)));
    } else if (there == 0) {
      if (pool.role == Role::chief)
        share.nodes = std::min(1, limit);  // coordinates, does not train
      continue;
    } else {
      share.workers_per_node = std::max(1, there / wanted);
    }
    // A worker larger than a node takes several.
    const int nodes_per_worker = wanted > there ? ceil_div(wanted, std::max(there, 1)) : 1;
    if (nodes_per_worker > 1 && wanted > 0) {
      share.workers = std::min(left, limit / nodes_per_worker);
      share.nodes = share.workers * nodes_per_worker;
    } else {
      share.workers = std::min(left, limit * share.workers_per_node);
      share.nodes = ceil_div(share.workers, share.workers_per_node);
    }
    left -= share.workers;
  }
  if (left > 0) {
    placement.impossible =
        fmt::format("the job's {} workers do not fit: the pools hold {} of them at their largest",
                    strategy.workers, strategy.workers - left);
  }
  for (const std::size_t p : order) {
    if (placement.pools[p].nodes == 0) continue;
    placement.pools[p].chief = true;
    break;
  }
}

void place_servers(const Plan& plan, const PlannedStrategy& strategy, Placement& placement) {
  int left = strategy.server_nodes();
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    if (plan.pools[p].role != Role::parameter_server) continue;
    PoolShare& share = placement.pools[p];
    share.servers = true;
    share.nodes = std::min(left, node_limit(plan, plan.pools[p]));
    left -= share.nodes;  // what is left shares the nodes
  }
}

void place_evaluators(const Plan& plan, Placement& placement) {
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    if (plan.pools[p].role != Role::evaluator) continue;
    placement.pools[p].beside = true;
    placement.pools[p].nodes = node_limit(plan, plan.pools[p]);
  }
}

}  // namespace

bool is_autoscaled(const Plan& plan, const PlannedPool& pool) {
  return pool.autoscaling && !plan.service.nodes_of_job;
}

int node_limit(const Plan& plan, const PlannedPool& pool) {
  return is_autoscaled(plan, pool) ? std::max(pool.nodes_max, pool.nodes_initial)
                                   : pool.nodes_initial;
}

Placement place_gang(const Plan& plan, const PlannedWorkload& job) {
  Placement placement;
  placement.pools.resize(plan.pools.size());
  place_workers(plan, job.strategy, placement);
  place_servers(plan, job.strategy, placement);
  place_evaluators(plan, placement);
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const auto& preferred = plan.pools[p].stands_in_for;
    if (!preferred) continue;
    placement.pools[p].stands_in_for = preferred;
    placement.pools[*preferred].stand_in = p;
  }
  return placement;
}

}  // namespace reckon
