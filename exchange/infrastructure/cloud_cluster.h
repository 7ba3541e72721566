#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/catalog/catalog.h"
#include "sim/scenario/plan.h"

// The nodes of a plan as a Kubernetes service of a cloud sells them, whatever tool creates them.
namespace reckon {

struct NodeTaint {
  std::string key, value, effect;  // "NoSchedule"; value may be empty
};

/// How much of a pool is billed at a reservation's price.
enum class Reserved { none, part, whole };

struct CloudPool {
  const PlannedPool* pool = nullptr;
  int initial = 1, min = 1, max = 1;  // machines; of TPU slices their hosts
  bool sold = true;  // the machine is a type of the provider's; false: of dimensions of its own
  bool spot = false, gpu = false;
  /// Its machines talk to each other in every step: they should be close.
  bool compact = false;
  Reserved reserved = Reserved::none;
  /// What pods of `reckon export kubernetes` select, and the service does not set itself.
  std::vector<std::pair<std::string, std::string>> labels;
  /// The same of what the service sets on its own pools, and a tool that makes nodes without them
  /// has to.
  std::vector<std::pair<std::string, std::string>> service_labels;
  /// What those pods tolerate, and the service does not set itself.
  std::vector<NodeTaint> taints;
};

struct CloudCluster {
  const Plan* plan = nullptr;
  std::string name;  // letters, digits and hyphens
  std::vector<CloudPool> pools;
  bool bucket = false;  // checkpoints go to the provider's object store
};

CloudCluster cloud_cluster_of(const Plan& plan, const Catalog& catalog);

/// "key=value:Effect" or "key:Effect".
NodeTaint parse_taint(const std::string& text);
std::string to_text(const NodeTaint& taint);

}  // namespace reckon
