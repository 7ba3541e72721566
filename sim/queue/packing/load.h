#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/queue/packing/pods.h"
#include "sim/scenario/spec/trace.h"

// Pods arrive one after the other and stay: how much of a cluster's GPUs is handed out before
// nothing fits any more. The experiment of Weng et al. 2023 (USENIX ATC '23, Sec. 6), as its
// simulator does it (hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator/simulator.go).
namespace reckon {

/// Over the GPUs that arrived pods asked for, in percent of the cluster's: entry k is of k + 1 %.
/// The mean over all pods after which the arrived share rounds to that percent, as
/// experiments/analysis/merge_alloc_discrete.py takes it; where there is none, over those that
/// round to a neighbour, and behind the last pod what it left.
struct LoadCurve {
  std::vector<double> gpu_percent;            // GPUs handed out, of the cluster's
  std::vector<double> fragmentation_percent;  // of the GPUs left: what typical pods cannot use
};

struct LoadRun {
  LoadCurve curve;
  std::int64_t arrived = 0, placed = 0;  // pods
  std::int64_t gpu_milli = 0;            // of the cluster
  std::int64_t gpu_milli_used = 0;       // at the end
  double fragmentation_percent = 0;      // at the end
};

/// What the seed decides: math/rand of Go, drawn from in the order of SortClusterPods(),
/// TunePodsByNodeTotalResource() and syncClusterResourceList(), so that a seed means the same pods
/// and nodes as in the published runs.
struct LoadDraws {
  /// Indexes into the list, shuffled; then without some drawn at random while they ask for more
  /// than `load` times `gpu_milli`, or with others drawn again until the next would (of which the
  /// share of one GPU counts).
  std::vector<std::uint32_t> pods;
  std::vector<int> ranks;  // by node: of equally good ones the lowest wins
};
/// `load`: GPUs asked for over the cluster's; 1.3 is 130 %.
LoadDraws draw_load(std::span<const PodRequest> pods, std::size_t nodes, std::int64_t gpu_milli,
                    double load, std::uint64_t seed);

/// Typical pods are those of `pods`. `nodes` have at least one GPU and at most kMostGpuModels
/// models; pods and nodes are in order of their names.
LoadRun run_load(std::span<const GpuNode> nodes, std::span<const PodRequest> pods,
                 SchedulingPolicy policy, double load, std::uint64_t seed);

}  // namespace reckon
