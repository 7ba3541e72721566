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

void place_workers(const PlannedCluster& cluster, const JobRequest& job, Placement& placement) {
  std::vector<std::size_t> order;
  for (const PlannedPool* pool : gang_pools(cluster))
    order.push_back(static_cast<std::size_t>(pool - cluster.pools.data()));
  int node_total = 0;
  for (const std::size_t p : order) node_total += node_limit(cluster, cluster.pools[p]);
  int left = job.workers;
  for (const std::size_t p : order) {
    const PlannedPool& pool = cluster.pools[p];
    PoolShare& share = placement.pools[p];
    const int limit = node_limit(cluster, pool);
    const int wanted = job.worker.gpus;
    const int there = accelerators_on(pool);
    if (wanted == 0) {
      share.workers_per_node = std::max(1, ceil_div(job.workers, std::max(node_total, 1)));
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
                    job.workers, job.workers - left);
  }
  for (const std::size_t p : order) {
    if (placement.pools[p].nodes == 0) continue;
    placement.pools[p].chief = true;
    break;
  }
}

void place_servers(const PlannedCluster& cluster, const JobRequest& job, Placement& placement) {
  int left = job.server_nodes;
  for (std::size_t p = 0; p < cluster.pools.size(); ++p) {
    if (cluster.pools[p].role != Role::parameter_server) continue;
    PoolShare& share = placement.pools[p];
    share.servers = true;
    share.nodes = std::min(left, node_limit(cluster, cluster.pools[p]));
    left -= share.nodes;  // what is left shares the nodes
  }
}

void place_evaluators(const PlannedCluster& cluster, Placement& placement) {
  for (std::size_t p = 0; p < cluster.pools.size(); ++p) {
    if (cluster.pools[p].role != Role::evaluator) continue;
    placement.pools[p].beside = true;
    placement.pools[p].nodes = node_limit(cluster, cluster.pools[p]);
  }
}

}  // namespace

bool is_autoscaled(const PlannedCluster& cluster, const PlannedPool& pool) {
  return pool.autoscaling && !cluster.service.nodes_of_job;
}

int node_limit(const PlannedCluster& cluster, const PlannedPool& pool) {
  return is_autoscaled(cluster, pool) ? std::max(pool.nodes_max, pool.nodes_initial)
                                      : pool.nodes_initial;
}

Placement place_gang(const PlannedCluster& cluster, const JobRequest& job) {
  Placement placement;
  placement.pools.resize(cluster.pools.size());
  place_workers(cluster, job, placement);
  place_servers(cluster, job, placement);
  place_evaluators(cluster, placement);
  for (std::size_t p = 0; p < cluster.pools.size(); ++p) {
    const auto& preferred = cluster.pools[p].fallback_for;
    if (!preferred) continue;
    placement.pools[p].fallback_for = preferred;
    placement.pools[*preferred].fallbacks.push_back(p);
  }
  return placement;
}

}  // namespace reckon
