#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"

// Whether the pods of a job have room on the nodes of a cluster, were they empty: the filters of
// Kubernetes' scheduler that a job of ours meets (resources, node selector, taints, cordons).
namespace reckon::kubernetes {

/// "500m", "2", "1536Mi", "1e3" [Kubernetes API reference, "Quantity"]; nullopt: none.
/// Its suffix taken in: cores, bytes or a count, by resource.
std::optional<double> quantity_of(const std::string& text);

using Resources = std::map<std::string, double>;  // "cpu", "memory", "nvidia.com/gpu"

/// Pods that are alike.
struct PodDemand {
  std::string name;  // of what makes them: "job train-0-worker-1"
  int count = 1;
  Resources requests;
  std::map<std::string, std::string> selector;
  Json tolerations = Json::array();
};
/// Of the Jobs of a list of manifests.
std::vector<PodDemand> demands_of(const std::vector<Json>& manifests);

struct Room {
  int pods = 0, placed = 0;      // wanted; with room, all at once
  int nodes = 0, not_ready = 0;  // or cordoned: these take none
  /// Of demands for which not even one pod has room: what is missing, as a sentence for all that
  /// are alike.
  std::vector<std::string> misfits;
};
/// Names of the nodes that have room for such a pod, were they empty.
std::vector<std::string> nodes_for(const PodDemand& demand, const Json& nodes);

/// First fit, the larger pods first. `nodes`: what `kubectl get nodes` lists.
Room room_for(const std::vector<PodDemand>& demands, const Json& nodes);

}  // namespace reckon::kubernetes
