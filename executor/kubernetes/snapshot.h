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
/// Pods and quotas are those of all namespaces, or of `name_space` alone where the user may look at
/// no other. Throws KubectlError where the cluster cannot be reached, or its nodes may not be
/// looked at.
Snapshot snapshot_of(const Kubectl& kubectl, const std::string& name_space = "");

}  // namespace reckon::kubernetes
