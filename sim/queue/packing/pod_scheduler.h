#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/queue/packing/placement.h"

// One pod after the other onto a cluster, as kube-scheduler does with one scoring plugin: filter
// the nodes, score those that pass, take the best.
namespace reckon {

struct PlacedPod {
  int node = -1;
  int gpu = -1;  // that the pod shares; -1: it has whole ones or none
};

/// The scores of a request are kept by node and computed again only where something was placed
/// meanwhile: a pod costs a look at each node, and a score at those that changed.
class PodScheduler {
 public:
  /// `ranks` by node, all different: which of equally good nodes comes first. `requests`: all that
  /// will come, each once. `fragmentation` and `requests` outlive the scheduler.
  PodScheduler(std::span<const GpuNode> nodes, const GpuModels& models, std::span<const int> ranks,
               std::span<const PodRequest> requests, const Fragmentation& fragmentation,
               std::unique_ptr<PlacementPolicy> policy, RandomStream luck);

  /// Places a pod of the kind `request`; nullopt: it fits nowhere, and nothing changes.
  std::optional<PlacedPod> place(std::size_t request);

  std::int64_t gpu_milli() const { return gpu_milli_; }  // of all nodes
  std::int64_t gpu_milli_used() const { return used_; }
  double fragmented_milli() const { return fragmented_; }  // thousandths of GPUs, of what is left
  std::span<const GpuNodeState> states() const { return states_; }

 private:
  static constexpr std::int64_t kNoFit = -1;
  struct Scores {
    std::vector<std::int64_t> by_place;   // kNoFit: it does not fit
    std::vector<std::uint32_t> versions;  // of the node when it was scored; 0: never
  };
  void score_again(std::size_t request);
  std::size_t choose(const Scores& scores);

  const Fragmentation& fragmentation_;
  std::span<const PodRequest> requests_;
  std::unique_ptr<PlacementPolicy> policy_;
  RandomStream luck_;
  std::vector<int> node_at_;          // by rank
  std::vector<GpuNodeState> states_;  // by rank
  std::vector<std::uint32_t> versions_;
  std::vector<std::uint64_t> allowed_;  // by request
  std::vector<Scores> scores_;          // by request
  std::int64_t gpu_milli_ = 0, used_ = 0;
  double fragmented_ = 0;  // thousandths of GPUs
};

}  // namespace reckon
