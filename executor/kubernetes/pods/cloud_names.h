#pragma once
#include <array>
#include <string_view>

// What clouds write on nodes of a cluster that runs a job. The records of a run are read without a
// catalog, and a cluster may have nodes of any cloud, so all that is known is looked for.
namespace reckon::kubernetes {

/// Taints of nodes that their cloud reclaims: GKE's, and those of the node termination handlers
/// of AWS and Azure.
inline constexpr std::array<std::string_view, 3> kReclaimTaints{
    "cloud.google.com/impending-node-termination", "aws-node-termination-handler/spot-itn",
    "kubernetes.azure.com/scalesetpriority-termination"};

/// GKE's label of nodes that say which driver they install; "disabled": the user has to.
inline constexpr std::string_view kDriverLabel = "cloud.google.com/gke-gpu-driver-version";
inline constexpr std::string_view kNoDriver = "disabled";

}  // namespace reckon::kubernetes
