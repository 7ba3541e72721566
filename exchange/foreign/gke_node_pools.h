#pragma once
#include <string>
#include <string_view>

#include "exchange/foreign/imported.h"

namespace reckon {

/// Which pools of a cluster do what, where the file leaves it open.
struct PoolChoice {
  std::string workers;  // name of the pool that trains; "": the one with the most accelerators
  std::string servers;  // of the parameter servers; "": none
};

/// What `gcloud container node-pools list --format=json` prints (Kubernetes Engine API v1,
/// NodePool): machines, accelerators, TPU topologies, autoscaling bounds over all zones, spot.
/// Pools that nothing of the job runs on are named, not imported.
Expected<Imported> import_gke_node_pools(std::string_view json, const std::string& file,
                                         const PoolChoice& choice, const Catalog& catalog);

}  // namespace reckon
