#pragma once
#include <cstdint>
#include <memory>

#include "sim/base/random.h"
#include "sim/queue/packing/fragmentation.h"
#include "sim/queue/packing/pods.h"
#include "sim/scenario/spec/trace.h"

// On which node, and which GPU of it, a pod is placed. Policies are those that Weng et al. 2023
// (USENIX ATC '23, Sec. 6.1) compare, with the formulas of their simulator,
// hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator/plugin/: whole numbers 0..100 as
// kube-scheduler's, so that ties are theirs too. A share of a GPU goes where named below; whole
// GPUs are the first free ones.
namespace reckon {

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  /// Of a node on which the pod fits; the highest wins, and of equals the one with the lowest rank.
  virtual std::int64_t score(const GpuNodeState& node, const PodRequest& pod) const = 0;
  /// The device for a pod that shares one. Default: the one with least left that suffices (the
  /// first of equals), `best` of open_gpu_share.go.
  virtual int gpu_to_share(const GpuNodeState& node, const PodRequest& pod,
                           RandomStream& luck) const;
  /// Any node on which the pod fits, whatever the scores.
  virtual bool any_node() const { return false; }
};

/// fgd: least growth of fragmentation. 100 / (1 + e^-x), x = (F_n - F_n') / 1000, F of
///   fragmentation.h before and after; a share goes to the GPU with the highest score.
///   Alg. 1 of the paper; fgd_score.go.
/// best_fit: 100 (1 - sum over CPU and GPU of 0.5 (free - request) / capacity), capacities 128 CPUs
///   and 8 GPUs; best_fit_score.go (its normalisation keeps the order).
/// dot_product: 100 (1 - (free . request) / 2), both as shares of 128 CPUs and 8 GPUs; Grandl et
///   al. 2014 (Tetris, SIGCOMM '14); dot_product_score.go with `merge` and `max`.
/// gpu_packing: GPUs in use first, then free GPUs of nodes in use, then free nodes:
///   100 - sum of percent left on the GPUs it would use / 10 (at least 50); 50 - free GPUs that it
///   would use (at least 33); 33 - GPUs of the node; gpu_packing_score.go.
/// gpu_clustering: nodes with pods of the same kind (shares of a GPU; n whole GPUs):
///   25 (8 - free GPUs) / 8, + 75 where only such pods run, + 50 where others do as well, + 25 on
///   an empty node; gpu_clustering_score.go; Xiao et al. 2018 (Gandiva, OSDI '18).
/// random: any node; a share goes to any GPU that suffices; random_score.go.
/// Pods without GPU score 0 in gpu_packing and gpu_clustering.
/// `fragmentation` outlives the policy. Errors: the policy is one of these (checked).
std::unique_ptr<PlacementPolicy> make_placement(SchedulingPolicy policy,
                                                const Fragmentation& fragmentation);

}  // namespace reckon
