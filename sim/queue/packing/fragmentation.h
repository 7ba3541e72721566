#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/queue/packing/pods.h"

// How much of the GPUs that are left cannot be used by the pods that usually come.
// Source: Weng et al. 2023, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent" (USENIX ATC '23), Sec. 3.2, and its simulator
// hkust-adsl/kubernetes-scheduler-simulator, pkg/utils/frag.go.
namespace reckon {

struct TypicalPod {
  PodRequest request;
  double share = 0;  // of the pods, 0..1
};

/// The most frequent requests (CPU, GPUs, share and models; memory does not count) that make up
/// `popularity` of all pods, with their shares scaled to add up to 1. Equally frequent ones: the
/// larger by CPU, then share, GPUs, name of models, first. GetTypicalPods() of frag.go;
/// the paper's experiments take 95 %, one request after the other.
std::vector<TypicalPod> typical_pods(std::span<const PodRequest> pods, double popularity = 0.95);

/// F_n = sum over typical pods m of p_m F_n(m), in thousandths of GPUs (eq. 3 of the paper).
/// F_n(m) is all that is left on the node where m cannot run on it (too little CPU or GPU, another
/// model, or m asks for no GPU), else what is left on those GPUs that have less than m asks of one.
class Fragmentation {
 public:
  Fragmentation(std::span<const TypicalPod> pods, const GpuModels& models);
  double amount(const GpuNodeState& node) const;

 private:
  struct Typical {
    std::int64_t cpu_milli = 0;
    std::uint64_t models = 0;
    int gpus = 0;
    int demand = 0;  // index of demands_
    double share = 0;
  };
  std::vector<std::int32_t> demands_;  // distinct thousandths of one GPU
  std::vector<Typical> typical_;
};

}  // namespace reckon
