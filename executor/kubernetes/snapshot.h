#pragma once
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"

namespace reckon::kubernetes {

/// What a cluster has and does now, read only: its nodes, pods and quotas, and what its autoscaler
/// says of itself, as one List.
struct Snapshot {
  std::string list;                   // JSON
  std::vector<std::string> not_seen;  // sentences: what the user may not look at
};
/// Throws KubectlError where the cluster cannot be reached, or its nodes may not be looked at.
Snapshot snapshot_of(const Kubectl& kubectl);

}  // namespace reckon::kubernetes
