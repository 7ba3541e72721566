#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/job_request.h"

// Pods that ask for whole GPUs or a share of one, and the nodes that they are placed on. Plain
// values: a hundred thousand of them are small. Units are PodRequest's.
namespace reckon {

inline constexpr int kMostGpusOfNode = 16;
inline constexpr int kMostGpuModels = 64;

struct GpuNode {
  std::string name;
  std::int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;
  std::string model;  // of its GPUs
};

/// Models of GPUs by number, as bits of the masks below.
class GpuModels {
 public:
  /// Of a node's GPUs; -1: more than kMostGpuModels models.
  int add(const std::string& model);
  /// Bit by model: those that a request allows ("": all). Names that no node has allow nothing.
  std::uint64_t allowed(const std::string& models) const;

 private:
  std::vector<std::string> names_;
};

/// What is left of a node, and what runs on it.
struct GpuNodeState {
  std::int64_t cpu_left = 0, memory_left = 0;
  std::array<std::int32_t, kMostGpusOfNode> gpu_left{};  // by device
  int gpus = 0;
  int model = 0;                                // of GpuModels
  double fragmented = 0;                        // thousandths of GPUs, by Fragmentation::amount
  std::array<int, kMostGpusOfNode + 1> pods{};  // [0]: that share a GPU, [n]: of n whole GPUs

  std::int64_t gpu_left_in_all() const;
  int gpus_free() const;  // wholly
};
GpuNodeState empty_state(const GpuNode& node, int model);

/// Whether the node has the CPU, the memory and the GPUs left, of an allowed model.
/// kube-scheduler's NodeResourcesFit and the filter of FGD's simulator
/// (hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator/plugin/open_gpu_share.go).
bool fits(const GpuNodeState& node, const PodRequest& pod, std::uint64_t allowed_models);

/// Takes what the pod asks for; a share comes from device `gpu`, whole GPUs from the first that are
/// free. The pod fits.
void take(GpuNodeState& node, const PodRequest& pod, int gpu);

}  // namespace reckon
