#pragma once
#include <string>
#include <vector>

#include "sim/queue/karpenter/karpenter_run.h"
#include "sim/queue/karpenter/packing.h"

// Instance types of round numbers for the tests of Karpenter's nodes.
namespace reckon::test {

inline NodePoolSpec plain_pool(const std::string& name = "default", int weight = 0) {
  NodePoolSpec spec;
  spec.name = name;
  spec.weight = weight;
  spec.expire_after.reset();
  return spec;
}

/// A type of so many CPUs, 4 GiB each, at a price of so much per hour.
inline LaunchOffering cpu_type(const std::string& type, int cpus, double usd,
                               CapacityType capacity = CapacityType::on_demand,
                               std::size_t node_pool = 0) {
  const NodeRoom room{cpus * 1000, cpus * 4096, 0};
  return {type, capacity, node_pool, room, room, static_cast<std::int64_t>(usd * 1e9)};
}
/// A type of so many GPUs, 12 CPUs and 48 GiB each.
inline LaunchOffering gpu_type(const std::string& type, int gpus, double usd,
                               CapacityType capacity = CapacityType::on_demand,
                               std::size_t node_pool = 0) {
  const NodeRoom room{gpus * 12'000, gpus * 49'152, gpus};
  return {type, capacity, node_pool, room, room, static_cast<std::int64_t>(usd * 1e9)};
}

inline std::vector<PackedPod> cpu_pods(const std::vector<int>& cpus) {
  std::vector<PackedPod> pods;
  for (const int c : cpus) pods.push_back({pods.size(), {c * 1000, c * 1024, 0}});
  return pods;
}

}  // namespace reckon::test
