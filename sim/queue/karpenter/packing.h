#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/queue/karpenter/offerings.h"

// Karpenter's bin packing: which nodes a batch of pods needs.
namespace reckon {

/// A pod of the batch, by the caller's number.
struct PackedPod {
  std::size_t pod = 0;
  NodeRoom asks;
};

/// A NodeClaim: pods that one node shall hold, and the offerings that can, cheapest first.
struct NodeClaim {
  std::size_t node_pool = 0;
  NodeRoom asks;                       // of all its pods
  std::vector<std::size_t> pods;       // the caller's numbers
  std::vector<std::size_t> offerings;  // indices
};

/// A node that is there or coming.
struct RoomOfNode {
  std::size_t node = 0;  // the caller's number
  NodeRoom free;
  bool ready = true;
};

struct Packing {
  std::vector<NodeClaim> claims;
  /// By pod of the batch as it was given: what holds it.
  enum class Place : std::uint8_t { nowhere, ready_node, coming_node, claim };
  std::vector<Place> places;
  bool limited = false;  // NodePools' limits kept a pod from a node
};

/// Packs pods as Karpenter's scheduling simulation does [karpenter.sh, "Scheduling"; Solve() and
/// add() in kubernetes-sigs/karpenter pkg/controllers/provisioning/scheduling/scheduler.go,
/// NewQueue in queue.go]: pods by CPU, then by memory, the largest first; each goes to the first
/// node with room, nodes that are ready first; else to the NodeClaim with the fewest pods that can
/// still hold it; else to a new one of the NodePool with the highest weight. A NodeClaim keeps all
/// offerings that hold its pods together, so it grows to the largest, and the cheapest that
/// suffices is launched. `left` by NodePool: a claim takes the largest of its offerings from it, as
/// Karpenter does not know which it will get. Pods of equal size stay in the order given. Karpenter
/// does not order by GPUs; as pods of a GPU cluster often say no CPU, GPUs break the tie here.
/// A claim whose offerings no longer have as many different values as minValues ask for is none:
/// the pod goes to another claim or NodePool, or nowhere ["NodePools", "Min Values"].
/// `unavailable` by offering: without capacity now, so in no claim; empty: all have some.
Packing pack_pods(std::span<const PackedPod> pods, std::span<const RoomOfNode> nodes,
                  std::span<const LaunchOffering> offerings,
                  std::span<const NodePoolSpec> node_pools, std::vector<LimitsLeft> left,
                  const std::vector<bool>& unavailable = {});

}  // namespace reckon
