#pragma once
#include <string>
#include <string_view>

#include "exchange/foreign/gke_node_pools.h"

namespace reckon {

/// What `terraform show -json` prints of a plan or of a state (format versions 1.x): node pools of
/// GKE (google_container_node_pool), EKS (aws_eks_node_group) and AKS
/// (azurerm_kubernetes_cluster_node_pool) in all of its modules, with machines, accelerators,
/// bounds and price. All are of one cloud. Pools that nothing of the job runs on are named, not
/// imported; so are its other resources, by type. `region`: where the file names none; "": that is
/// a mistake.
Expected<Imported> import_terraform_plan(std::string_view json, const std::string& file,
                                         const PoolChoice& choice, const std::string& region,
                                         const Catalog& catalog);

}  // namespace reckon
