#include "sim/cluster/node_pool.h"

#include <algorithm>

#include "sim/cluster/never.h"
#include "sim/cluster/placement.h"

namespace reckon {
namespace {

/// Who replaces a node makes the other one before it goes.
int slots_of(const PlannedCluster& rented, const PlannedPool& pool) {
  constexpr int kMostSlots = 65'536;  // node_entity()
  const int limit = node_limit(rented, pool);
  const bool replaces =
      pool.node_pool || (rented.node_auto_provisioning && is_autoscaled(rented, pool));
  return replaces ? std::min(2 * limit, kMostSlots) : limit;
}

Node make_node(const PlannedPool& pool, std::uint32_t p, std::uint32_t slot,
               const LifeOptions& options) {
  const std::uint32_t entity = node_entity(pool.name, slot);
  const auto stream = [&](Purpose purpose) {
    return RandomStream{options.seed, options.replication, purpose, entity};
  };
  return Node{.pool = p,
              .slot = slot,
              .provisioning = stream(kProvisioning),
              .reclaim = stream(kReclaim),
              .maintenance = stream(kMaintenance),
              .failure = stream(kFailure)};
}

}  // namespace

Cluster::Cluster(const PlannedCluster& rented, const LifeOptions& options)
    : shortages(rented.shortage, options.seed, options.replication) {
  std::size_t total = 0;
  for (const PlannedPool& pool : rented.pools)
    total += static_cast<std::size_t>(slots_of(rented, pool));
  nodes.reserve(total);
  pools.reserve(rented.pools.size());
  std::size_t spot_slots = 0;
  for (std::uint32_t p = 0; p < rented.pools.size(); ++p) {
    const PlannedPool& planned = rented.pools[p];
    const int slots = slots_of(rented, planned);
    Pool pool{.plan = &planned,
              .autoscaled = is_autoscaled(rented, planned),
              .reclaimable = planned.pricing == CapacityType::spot,
              .first_node = static_cast<std::uint32_t>(nodes.size()),
              .entity = node_entity(planned.name, 0),
              .provisioning_delay = DelayLaw{planned.provisioning},
              .empty = SlotSet(static_cast<std::size_t>(slots)),
              .free = SlotSet(static_cast<std::size_t>(slots)),
              .maintenance = RandomStream{options.seed, options.replication, kGroupMaintenance,
                                          node_entity(planned.name, 0)}};
    pool.patience =
        clock_or_never(planned.patience.value_or(rented.autoscaler.max_node_provision_time));
    if (planned.fallback_for) pool.preferred = std::uint32_t(*planned.fallback_for);
    pool.fallback_in_use = planned.fallback_for && rented.chooses_pools();
    // Each machine type has a spot market; that of the pool's own is the cluster's.
    if (pool.fallback_in_use && pool.reclaimable &&
        planned.machine.name != rented.pools[*planned.fallback_for].machine.name)
      pool.market.emplace(rented.shortage, options.seed, options.replication,
                          node_entity(planned.machine.name, 0));
    pool.trace_offset = spot_slots;
    if (pool.reclaimable) spot_slots += static_cast<std::size_t>(std::max(planned.nodes_max, 0));
    if (rented.failures.on && planned.accelerators_per_node > 0) {
      pool.failure_mean =
          rented.failures.mtbf_per_accelerator.value / planned.accelerators_per_node;
    }
    for (std::uint32_t s = 0; s < static_cast<std::uint32_t>(slots); ++s) {
      pool.empty.insert(s);
      nodes.push_back(make_node(planned, p, s, options));
    }
    pools.push_back(std::move(pool));
  }
  for (std::uint32_t p = 0; p < pools.size(); ++p) {
    if (!pools[p].preferred) by_preference.push_back(p);
  }
  for (std::uint32_t p = 0; p < pools.size(); ++p) {
    if (!pools[p].preferred) continue;
    by_preference.push_back(p);
    pools[*pools[p].preferred].fallbacks.push_back(p);
  }
}

int Cluster::slots(const Pool& pool) const {
  const auto p = static_cast<std::size_t>(&pool - pools.data());
  const std::size_t end = p + 1 < pools.size() ? pools[p + 1].first_node : nodes.size();
  return static_cast<int>(end - pool.first_node);
}

}  // namespace reckon
