#include "sim/cluster/autoscalers/karpenter_choices.h"

#include <algorithm>
#include <tuple>

namespace reckon {
namespace {

/// MinInstanceTypesForSpotToSpotConsolidation.
constexpr std::size_t kFlexibility = 15;

std::int64_t price_of(const PlannedPool& pool) {
  if (pool.pricing == CapacityType::reserved && pool.reservation)
    return pool.reservation->price.nano_usd_per_hour;
  return pool.price.machine.nano_usd_per_hour + pool.price.accelerators.nano_usd_per_hour;
}

int rank_of(CapacityType capacity) {
  switch (capacity) {
    case CapacityType::reserved:
      return 0;
    case CapacityType::spot:
      return 1;
    case CapacityType::on_demand:
      return 2;
  }
  return 2;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> karpenter_choices(const PlannedCluster& cluster) {
  std::vector<std::vector<std::uint32_t>> choices(cluster.pools.size());
  for (std::uint32_t p = 0; p < cluster.pools.size(); ++p) {
    const PlannedPool& pool = cluster.pools[p];
    if (pool.node_pool) choices[pool.fallback_for.value_or(p)].push_back(p);
  }
  const auto key = [&](std::uint32_t p) {
    const PlannedPool& pool = cluster.pools[p];
    return std::tuple(-cluster.karpenter->node_pools[*pool.node_pool].weight, *pool.node_pool,
                      rank_of(pool.pricing), price_of(pool), p);
  };
  for (auto& some : choices) std::ranges::sort(some, {}, key);
  return choices;
}

std::vector<std::uint32_t> karpenter_replacements(const PlannedCluster& cluster,
                                                  const std::vector<std::uint32_t>& choices,
                                                  std::uint32_t own) {
  const auto is_spot = [&](std::uint32_t p) {
    return cluster.pools[p].pricing == CapacityType::spot;
  };
  const auto price = [&](std::uint32_t p) { return price_of(cluster.pools[p]); };
  const bool spot_only = is_spot(own) || std::ranges::any_of(choices, is_spot);
  std::vector<std::uint32_t> found;
  for (const std::uint32_t p : choices)
    if (price(p) < price(own) && (!spot_only || is_spot(p))) found.push_back(p);
  std::ranges::stable_sort(found, {}, price);
  if (!is_spot(own)) return found;
  if (!cluster.karpenter->spot_to_spot_consolidation || found.size() < kFlexibility) return {};
  found.resize(kFlexibility);
  return found;
}

}  // namespace reckon
