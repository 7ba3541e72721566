#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/catalog/catalog.h"

// Inside exchange/foreign: what a Node object says of the machine behind it, and what the cluster
// autoscaler says of its groups of them.
namespace reckon {

/// The text at a JSON pointer; "": there is none.
std::string text_at(const nlohmann::json& object, const char* pointer);

struct SeenNode {
  std::string name, pool, machine, region, zone;
  std::optional<Provider> provider;
  std::string accelerator;  // of the catalog; "": none, or no label says which
  std::string product;      // what a label calls it
  std::string resource;     // by which it is asked for: nvidia.com/gpu
  int devices = 0;
  double cores = 0, memory = 0;  // of the machine; memory in bytes
  bool spot = false, ready = false, cordoned = false;
  /// Keys of taints that keep pods of the job away: those of the control plane, of teams. Not those
  /// that its pods tolerate (accelerators, spot), nor those that say how the node is just now.
  std::vector<std::string> taints;
};
SeenNode seen_node(const nlohmann::json& node, const Catalog& catalog);

struct ScaledGroup {
  std::string name;  // without the address in front of it
  int target = 0, min = 0, max = 0;
  bool backs_off = false;  // nodes that were asked for did not come
};
/// Of the autoscaler's status, in the text that it wrote before 1.30 and the YAML since.
std::vector<ScaledGroup> scaled_groups(const std::string& status);
/// How many letters of the node's name or its pool's the group's name holds; 0: it is not its node.
/// The largest is its group, as "gpu" is in the name of pool "gpu-big" too. GKE's groups are called
/// as their nodes, with "-grp" in place of what numbers them; groups of EKS hold the name of the
/// node group.
std::size_t fit_of(const ScaledGroup& group, const SeenNode& node);

}  // namespace reckon
