#pragma once
#include <cstdint>
#include <vector>

#include "sim/scenario/plan.h"

// Which of the pools that may serve the same pods Karpenter takes. A pool is one machine and
// capacity type of one NodePool.
namespace reckon {

/// By pool of pods: the pools that may serve them, best first; empty where Karpenter serves none.
/// The NodePool of the highest weight comes first [karpenter.sh, "NodePools", "spec.weight"], then
/// reserved, spot and on-demand ["Capacity Type"], then the lowest price: that is lowest-price for
/// on-demand and as far as known price-capacity-optimized for spot ["FAQ", "How does Karpenter
/// dynamically select instance types?"]. How deep a spot market is nobody publishes.
std::vector<std::vector<std::uint32_t>> karpenter_choices(const PlannedCluster& cluster);

/// Of `choices`, those that may replace a node of pool `own` because they cost less, cheapest first
/// ["Disruption", "Consolidation" and "Spot consolidation"; computeConsolidation in
/// kubernetes-sigs/karpenter pkg/controllers/disruption/consolidation.go]. A spot node is replaced
/// by a spot node only, under the feature gate, and where 15 types cost less, by one of the 15
/// cheapest; a node on demand by a spot node only where the NodePools allow spot at all.
std::vector<std::uint32_t> karpenter_replacements(const PlannedCluster& cluster,
                                                  const std::vector<std::uint32_t>& choices,
                                                  std::uint32_t own);

}  // namespace reckon
