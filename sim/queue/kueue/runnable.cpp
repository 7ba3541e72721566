#include "sim/queue/kueue/runnable.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/queue/kueue/kueue.h"

namespace reckon {

std::vector<std::string> resources_of(std::span<const NodeGroup> groups, std::size_t pools) {
  std::vector<std::string> resources(pools);
  for (const NodeGroup& group : groups)
    resources[static_cast<std::size_t>(group.cell)] = group.resource;
  return resources;
}

std::size_t kueue_queue_of(const JobList& list, std::size_t job, const KueueSpec& kueue) {
  const std::string& name = list.names.queues.name(list.jobs[job].owner.queue);
  if (name.empty()) return kueue.cluster_queues.size() == 1 ? 0 : kNoClusterQueue;
  const auto found = std::find_if(kueue.cluster_queues.begin(), kueue.cluster_queues.end(),
                                  [&](const ClusterQueueSpec& q) { return q.name == name; });
  return found == kueue.cluster_queues.end()
             ? kNoClusterQueue
             : static_cast<std::size_t>(found - kueue.cluster_queues.begin());
}

TopologyRequest topology_of(const JobList& list, std::size_t job) {
  const JobOwner& owner = list.jobs[job].owner;
  return {list.names.topologies.name(owner.topology), owner.topology_required};
}

bool fits_empty(const KueueQuotas& quotas, const KueueTopology& topology, const FreeNodes& empty,
                std::size_t queue, int pool, int gpus, const TopologyRequest& request) {
  if (gpus > quotas.most(queue, pool) || !topology.has_level(pool, request.level)) return false;
  return request.level.empty() ? empty.fits(gpus, cell_of_pool(pool))
                               : topology.place(empty, pool, gpus, request).has_value();
}

bool can_ever_run(const KueueQuotas& quotas, const KueueTopology& topology, const FreeNodes& empty,
                  std::size_t queue, int gpus, const TopologyRequest& request, CellSet cells) {
  const auto flavors = quotas.flavors(queue);
  return std::any_of(flavors.begin(), flavors.end(), [&](int pool) {
    return (cell_of_pool(pool) & cells) != 0 &&
           fits_empty(quotas, topology, empty, queue, pool, gpus, request);
  });
}

std::vector<std::string> unknown_cluster_queues(const JobList& list, const KueueSpec& kueue) {
  std::set<std::string> unknown;
  for (std::size_t j = 0; j < list.jobs.size(); ++j)
    if (kueue_queue_of(list, j, kueue) == kNoClusterQueue)
      unknown.insert(list.names.queues.name(list.jobs[j].owner.queue));
  return {unknown.begin(), unknown.end()};
}

std::optional<std::string> kueue_never(const JobList& list, std::size_t job,
                                       std::span<const NodeGroup> groups,
                                       std::span<const std::string> pools, const KueueSpec& kueue,
                                       CellSet cells) {
  const std::size_t queue = kueue_queue_of(list, job, kueue);
  const KueueQuotas quotas(kueue, pools, resources_of(groups, pools.size()));
  const KueueTopology topology(kueue, groups, pools);
  const FreeNodes empty(groups);
  const int gpus = list.jobs[job].gpus();
  const TopologyRequest request = topology_of(list, job);
  if (can_ever_run(quotas, topology, empty, queue, gpus, request, cells)) return std::nullopt;
  int most = 0, best = KueueQuotas::kNoFlavor;
  for (const int pool : quotas.flavors(queue))
    if ((cell_of_pool(pool) & cells) != 0 && quotas.most(queue, pool) > most)
      most = quotas.most(queue, pool), best = pool;
  const std::string& name = kueue.cluster_queues[queue].name;
  if (best == KueueQuotas::kNoFlavor)
    return fmt::format("no flavor of ClusterQueue '{}' has what it asks for", name);
  if (gpus > most)
    return fmt::format("ClusterQueue '{}' can have {} of a flavor at most", name, most);
  if (can_ever_run(quotas, topology, empty, queue, gpus, {}, cells))
    return fmt::format("no flavor of ClusterQueue '{}' has a domain of '{}' with so many", name,
                       request.level);
  return fmt::format("of pool '{}' {}", pools[static_cast<std::size_t>(best)],
                     limit_that_binds(gpus, groups, cell_of_pool(best)).value_or(""));
}

}  // namespace reckon
