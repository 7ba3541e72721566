#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/catalog/catalog.h"
#include "sim/scenario/spec/karpenter.h"

// What Karpenter may launch, and what pods ask of it.
namespace reckon {

/// Of a node, or asked for by a pod. Units as in PodRequest.
struct NodeRoom {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;

  bool holds(const NodeRoom& asked) const {
    return asked.cpu_milli <= cpu_milli && asked.memory_mib <= memory_mib && asked.gpus <= gpus;
  }
  NodeRoom& operator+=(const NodeRoom& o) {
    cpu_milli += o.cpu_milli, memory_mib += o.memory_mib, gpus += o.gpus;
    return *this;
  }
  NodeRoom& operator-=(const NodeRoom& o) {
    cpu_milli -= o.cpu_milli, memory_mib -= o.memory_mib, gpus -= o.gpus;
    return *this;
  }
  friend NodeRoom operator+(NodeRoom a, const NodeRoom& b) { return a += b; }
  friend bool operator==(const NodeRoom&, const NodeRoom&) = default;
};

/// An instance type under a capacity type, which a NodePool admits.
struct LaunchOffering {
  std::string type;
  CapacityType capacity = CapacityType::on_demand;
  std::size_t node_pool = 0;
  NodeRoom allocatable;  // for pods
  NodeRoom size;         // what `limits` count
  std::int64_t nano_usd_per_hour = 0;
  /// Of its NodePool's requirements with minValues, in order, the values of their labels.
  std::vector<std::string> values{};
};

/// Have these offerings of the NodePool so many different values of each label as its requirements'
/// minValues say? [karpenter.sh, "NodePools", "Min Values"; SatisfiesMinValues() in
/// kubernetes-sigs/karpenter pkg/cloudprovider/types.go]
bool meets_min_values(const NodePoolSpec& node_pool, std::span<const LaunchOffering> offerings,
                      std::span<const std::size_t> chosen);

/// Of a NodePool, what its `limits` leave; nothing said: no end.
struct LimitsLeft {
  static constexpr std::int64_t kNoEnd = INT64_MAX / 4;
  std::int64_t cpu_milli = kNoEnd, memory_mib = kNoEnd, gpus = kNoEnd, nodes = kNoEnd;

  bool admits(const NodeRoom& size) const {
    return size.cpu_milli <= cpu_milli && size.memory_mib <= memory_mib && size.gpus <= gpus &&
           nodes >= 1;
  }
  void take(const NodeRoom& size) {
    cpu_milli -= size.cpu_milli, memory_mib -= size.memory_mib, gpus -= size.gpus, --nodes;
  }
};
LimitsLeft limits_of(const NodePoolSpec& node_pool);

}  // namespace reckon
