#pragma once
#include <optional>
#include <span>
#include <string>

#include "executor/kubernetes/pods/pod_view.h"
#include "sim/cluster/life/life.h"

// Why a pod of a run is no more, or does not begin.
namespace reckon::kubernetes {

/// What took a pod away.
enum class PodEnd {
  finished,        // by itself: 0
  failed,          // by itself: any other code
  out_of_memory,   // above its limit
  evicted,         // by its node, which ran low on memory or disk
  preempted,       // by a pod of a higher priority
  node_shut_down,  // spot capacity that was reclaimed, or a node that was switched off
  node_lost,       // its node does not answer, or is no more
  drained,         // evicted from a node that is emptied for maintenance
  deleted          // by somebody
};

struct PodLoss {
  PodEnd end = PodEnd::finished;
  int code = 0;       // of its container; 137 where nobody saw it end
  std::string words;  // "was evicted by node1: The node was low on resource: memory"
};

/// Of a pod that has ended, is gone, or whose node is lost. `events`: those about it; `node`: where
/// it ran, nullopt where that is gone or may not be looked at (`node_gone` says which).
///
/// By the conditions and reasons of Kubernetes' documentation, "Pod disruption conditions",
/// "Node-pressure eviction" and "Graceful node shutdown"; before 1.26 by events, and a drain by the
/// node's being cordoned, which is how `kubectl drain` begins.
PodLoss loss_of(const PodView& pod, std::span<const EventView> events,
                const std::optional<NodeView>& node, bool node_gone);

/// In the simulator's words. The code of a program that is not ours says nothing (`foreign`).
Interruption interruption_of(const PodLoss& loss, bool foreign);

/// Why a pod's container does not start; "": it does, or there is no trouble yet. `for_good`: it
/// will not without somebody changing something.
struct StartTrouble {
  std::string words;
  bool for_good = false;
};
StartTrouble start_trouble(const PodView& pod);

}  // namespace reckon::kubernetes
