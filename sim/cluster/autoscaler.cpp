#include "sim/cluster/autoscaler.h"

#include <array>

#include "sim/base/check.h"

namespace reckon {
namespace {

struct AutoscalerKindRow {
  bool (*scales)(const PlannedCluster&);
  std::unique_ptr<Autoscaler> (*make)(const PlannedCluster&, const LifeOptions&);
};

/// The first that scales the cluster does; the last scales what no other does.
constexpr std::array kKinds{
    AutoscalerKindRow{[](const PlannedCluster& c) { return c.karpenter.has_value(); },
                      make_karpenter},
    AutoscalerKindRow{[](const PlannedCluster& c) { return c.node_auto_provisioning.has_value(); },
                      make_node_auto_provisioning},
    AutoscalerKindRow{[](const PlannedCluster& c) { return c.slurm.has_value(); },
                      make_slurm_power_saving},
    AutoscalerKindRow{[](const PlannedCluster&) { return true; }, make_cluster_autoscaler}};

}  // namespace

std::unique_ptr<Autoscaler> make_autoscaler(const PlannedCluster& cluster,
                                            const LifeOptions& options) {
  for (const AutoscalerKindRow& kind : kKinds)
    if (kind.scales(cluster)) return kind.make(cluster, options);
  RECKON_CHECK(false);
  return nullptr;
}

}  // namespace reckon
