#pragma once
#include <string>
#include <string_view>

#include "exchange/foreign/imported.h"
#include "exchange/foreign/kubernetes_jobs.h"

namespace reckon {

struct ClusterChoice {
  std::string pool, servers;  // pools that train and hold the servers; "": the one with the most
                              // accelerators, none
  std::string name_space;     // whose quotas bound the job; "": none does
  ClusterHints hints;         // of what no label says
};

/// A cluster as it is now: a List of its Node, Pod and ResourceQuota objects and of the ConfigMap
/// that the cluster autoscaler keeps (kube-system/cluster-autoscaler-status), as kubectl prints
/// them. Nodes of one pool label, else of one machine and its accelerators, are a pool. Nodes that
/// are not ready, cordoned, or whose accelerators are in use are not counted; the bounds of
/// autoscaling are those of the status; a quota of the namespace bounds the pool that trains. What
/// is in use, what waits and what is assumed stands in the comments. Machines that the catalog does
/// not know are described by what their nodes have, on premises.
Expected<Imported> import_cluster(std::string_view json, const std::string& from,
                                  const ClusterChoice& choice, const Catalog& catalog);

/// The accelerator that NVIDIA's GPU feature discovery calls so ("NVIDIA-A100-SXM4-80GB",
/// "Tesla-T4"); nullptr: none of the catalog.
const Accelerator* accelerator_of_product(const std::string& product, const Catalog& catalog);

}  // namespace reckon
