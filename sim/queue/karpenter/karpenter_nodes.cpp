#include "sim/queue/karpenter/karpenter_nodes.h"

#include <algorithm>

#include "sim/cluster/never.h"

namespace reckon::karpenter {

SimTime consolidatable_at(const Node& node, const NodePoolSpec& spec) {
  if (!spec.consolidate_after) return SimTime::max();
  return node.last_pod_event + clock_or_never(*spec.consolidate_after);
}

double lifetime_left(const Node& node, const NodePoolSpec& spec, SimTime now) {
  if (!spec.expire_after) return 1;
  const double age = to_seconds(now - node.requested) / *spec.expire_after;
  return std::clamp(1 - age, 0.0, 1.0);
}

double fit_score(const Node& node, const NodeRoom& allocatable, const NodeRoom& asks,
                 ScoringStrategy strategy) {
  double sum = 0;
  int resources = 0;
  const auto add = [&](double all, double left) {
    if (all <= 0) return;
    sum += left / all;
    ++resources;
  };
  add(double(allocatable.cpu_milli), double(node.free.cpu_milli - asks.cpu_milli));
  add(double(allocatable.memory_mib), double(node.free.memory_mib - asks.memory_mib));
  add(allocatable.gpus, node.free.gpus - asks.gpus);
  const double left = resources > 0 ? sum / resources : 0;
  return strategy == ScoringStrategy::least_allocated ? left : 1 - left;
}

}  // namespace reckon::karpenter
