#pragma once
#include <optional>
#include <vector>

#include "sim/queue/karpenter/karpenter_run.h"
#include "sim/queue/karpenter/packing.h"

// Pods and nodes of one run. Internal to sim/queue/karpenter.
namespace reckon::karpenter {

inline constexpr std::size_t kNoNode = static_cast<std::size_t>(-1);

struct Pod {
  std::size_t job = 0;
  NodeRoom asks;
  std::size_t node = kNoNode;
  SimTime bound{};
};

struct Node {
  std::size_t offering = 0;
  NodeRoom free;
  bool ready = false, gone = false;
  bool tainted = false;   // karpenter.sh/disrupted: takes no more pods
  bool draining = false;  // goes with its last pod
  bool noticed = false;   // the provider takes it back
  std::optional<SimTime> drifted{};
  SimTime requested{}, last_pod_event{};
  std::vector<std::size_t> pods;
};

/// From then on consolidation may look at the node ["NodePools", "consolidateAfter"].
SimTime consolidatable_at(const Node& node, const NodePoolSpec& spec);
/// The share of expireAfter that is left; 1 where nodes do not expire.
double lifetime_left(const Node& node, const NodePoolSpec& spec, SimTime now);
/// Of NodeResourcesFit, 0 .. 1: the mean share of CPUs, memory and GPUs that is free behind the pod
/// (LeastAllocated) or taken (MostAllocated).
double fit_score(const Node& node, const NodeRoom& allocatable, const NodeRoom& asks,
                 ScoringStrategy strategy);

}  // namespace reckon::karpenter
