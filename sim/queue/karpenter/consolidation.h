#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/queue/karpenter/packing.h"

// Which nodes Karpenter deletes or replaces to save money [karpenter.sh, "Disruption",
// "Consolidation"].
namespace reckon {

/// A node that is ready, and may be disrupted now.
struct Candidate {
  std::size_t node = 0;  // the caller's number
  std::size_t offering = 0;
  double disruption_cost = 0;  // the lower goes first: disruption_cost_of()
  std::vector<PackedPod> pods;
};

/// What consolidation looks at: candidates, and what their pods could use instead.
struct ConsolidationView {
  std::span<const LaunchOffering> offerings;
  std::span<const NodePoolSpec> node_pools;
  std::span<const RoomOfNode> nodes;  // all that stay or are candidates, in the order of packing
  std::span<const PackedPod> pending;
  std::vector<LimitsLeft> left;     // by NodePool, behind all `nodes`
  bool spot_to_spot = false;        // the feature gate SpotToSpotConsolidation
  std::vector<bool> unavailable{};  // by offering: without capacity now; empty: none is
};

/// Nodes to delete, and the offerings of the one that replaces them, cheapest first.
struct ConsolidationCommand {
  std::vector<std::size_t> nodes;
  std::optional<NodeClaim> replacement;
};

/// "Karpenter chooses to consolidate the node that overall disrupts your workloads the least by
/// preferring to terminate: nodes running fewer pods, nodes that will expire soon, nodes with lower
/// priority pods" ["Consolidation"; disruptionutils.ReschedulingCost and LifetimeRemaining]: the
/// sum over its pods of 1 + priority / 2^25, within -10 .. 10 each, times the share of expireAfter
/// that is left.
double disruption_cost_of(std::span<const int> priorities, double lifetime_left);

/// Can these candidates go together? All their pods must fit on ready nodes that stay and at most
/// one new node that costs less than all of them ["Deletion", "Replace"; computeConsolidation in
/// kubernetes-sigs/karpenter pkg/controllers/disruption/consolidation.go]. Nodes on demand are
/// replaced by spot only where the NodePool allows spot. Spot by spot ["Spot consolidation"]: under
/// the feature gate; one node only where 15 instance types cost less, by one of the 15 cheapest,
/// several nodes without that. Several nodes are replaced by a type of theirs only where it costs
/// less than the cheapest node of that type, else that one could have stayed [filterOutSameType in
/// multinodeconsolidation.go]. What remains must meet minValues; spot by spot as many of the
/// cheapest as that takes are in question, if more than 15. nullopt: they stay.
std::optional<ConsolidationCommand> consolidate(const ConsolidationView& view,
                                                std::span<const Candidate> candidates);

/// "Multi Node Consolidation": the first n of the candidates by disruption cost, n at least 2 and
/// at most 100, found by binary search [firstNConsolidationOption in multinodeconsolidation.go].
/// `candidates` in order; budgets were applied.
std::optional<ConsolidationCommand> consolidate_several(const ConsolidationView& view,
                                                        std::span<const Candidate> candidates);

/// What replaces a drifted node: nodes that its pods need beside those that are ready, however many
/// and at whatever price ["Drift"; ComputeCommand() in drift.go]; nullopt: a pod finds no place.
std::optional<std::vector<NodeClaim>> replacements_of(const ConsolidationView& view,
                                                      const Candidate& drifted);

/// Offerings of a claim in the order in which they are asked for: spot before on demand
/// ["NodePools", "Capacity Type"], the cheapest first.
std::vector<std::size_t> launch_order(std::span<const LaunchOffering> offerings,
                                      std::span<const std::size_t> choices);

}  // namespace reckon
