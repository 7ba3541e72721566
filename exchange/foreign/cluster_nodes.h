#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/catalog/catalog.h"

// Inside exchange/foreign: what a Node object says of the machine behind it, and what the cluster
// autoscaler says of its groups of them.
namespace reckon {

struct SeenNode {
  std::string name, pool, machine, region, zone;
  std::optional<Provider> provider;
  std::string accelerator;  // of the catalog; "": none, or no label says which
  std::string product;      // what a label calls it
  std::string resource;     // by which it is asked for: nvidia.com/gpu
  int devices = 0;
  double cores = 0, memory = 0;  // of the machine
  bool spot = false, ready = false, cordoned = false;
};
SeenNode seen_node(const nlohmann::json& node, const Catalog& catalog);

struct ScaledGroup {
  std::string name;  // without the address in front of it
  int target = 0, min = 0, max = 0;
  bool backs_off = false;  // nodes that were asked for did not come
};
/// Of the autoscaler's status, in the text that it wrote before 1.30 and the YAML since.
std::vector<ScaledGroup> scaled_groups(const std::string& status);
/// Do the group's nodes carry such names? GKE's groups are called as their nodes, with "-grp" in
/// place of what numbers them; groups of EKS hold the name of the node group.
bool is_of(const ScaledGroup& group, const SeenNode& node);

}  // namespace reckon
