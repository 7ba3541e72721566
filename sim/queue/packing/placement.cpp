#include "sim/queue/packing/placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr double kMostScore = 100;     // kube-scheduler's MaxNodeScore
constexpr double kCpuScale = 128'000;  // the largest node of the trace: MaxSpecCpu, MaxSpecGpu of
constexpr std::int64_t kGpuScale = 8'000;  // pkg/type/open-gpu-share/utils/const.go

class BestFit : public PlacementPolicy {
 public:
  std::int64_t score(const GpuNodeState& node, const PodRequest& pod) const override {
    const double cpu = double(node.cpu_left - pod.cpu_milli) / kCpuScale;
    const double gpu = double(node.gpu_left_in_all() - pod.gpu_milli_in_all()) / double(kGpuScale);
    return static_cast<std::int64_t>((1.0 - (cpu * 0.5 + gpu * 0.5)) * kMostScore);
  }
};

class DotProduct : public PlacementPolicy {
 public:
  std::int64_t score(const GpuNodeState& node, const PodRequest& pod) const override {
    const double cpu = double(node.cpu_left) / kCpuScale * (double(pod.cpu_milli) / kCpuScale);
    const double gpu = double(node.gpu_left_in_all()) / double(kGpuScale) *
                       (double(pod.gpu_milli_in_all()) / double(kGpuScale));
    return static_cast<std::int64_t>(kMostScore * (1.0 - (cpu + gpu) / 2));
  }
};

class GpuPacking : public PlacementPolicy {
 public:
  std::int64_t score(const GpuNodeState& node, const PodRequest& pod) const override {
    constexpr std::int64_t kInUse = 100, kFree = 50, kEmptyNode = 33;
    if (pod.gpus == 0) return 0;
    const int free = node.gpus_free();
    if (free == node.gpus) return std::max<std::int64_t>(kEmptyNode - free, free);
    std::array<std::int32_t, kMostGpusOfNode> left = node.gpu_left;
    std::sort(left.begin(), left.begin() + node.gpus);
    int wanted = pod.gpus, free_used = 0;
    std::int64_t percent_left = 0;
    for (int g = 0; g < node.gpus && wanted > 0; ++g) {
      if (left[g] < pod.gpu_milli) continue;
      --wanted;
      free_used += left[g] == kWholeGpu ? 1 : 0;
      percent_left += std::int64_t{left[g]} * 100 / kWholeGpu;
    }
    if (free_used > 0) return std::max(kFree - free_used, kEmptyNode);
    return std::max(kInUse - percent_left / 10, kFree);
  }
};

class GpuClustering : public PlacementPolicy {
 public:
  std::int64_t score(const GpuNodeState& node, const PodRequest& pod) const override {
    constexpr std::int64_t kQuarter = 25;
    if (pod.gpus == 0) return 0;
    const std::int64_t fill = kQuarter * (kGpuScale - node.gpu_left_in_all()) / kGpuScale;
    const auto kinds =
        std::count_if(node.pods.begin(), node.pods.end(), [](int n) { return n > 0; });
    const bool same = node.pods[pod.shares_a_gpu() ? 0 : pod.gpus] > 0;
    if (same) return fill + (kinds == 1 ? 3 : 2) * kQuarter;
    return fill + (kinds == 0 ? kQuarter : 0);
  }
};

class RandomNode : public PlacementPolicy {
 public:
  std::int64_t score(const GpuNodeState&, const PodRequest&) const override { return 0; }
  bool any_node() const override { return true; }
  int gpu_to_share(const GpuNodeState& node, const PodRequest& pod,
                   RandomStream& luck) const override {
    int enough = 0, chosen = -1;
    for (int g = 0; g < node.gpus; ++g)
      if (node.gpu_left[g] >= pod.gpu_milli && luck.uniform() * ++enough < 1) chosen = g;
    return chosen;
  }
};

class FragmentationGradientDescent : public PlacementPolicy {
 public:
  explicit FragmentationGradientDescent(const Fragmentation& fragmentation)
      : fragmentation_(fragmentation) {}

  std::int64_t score(const GpuNodeState& node, const PodRequest& pod) const override {
    return pod.shares_a_gpu() ? best_share(node, pod).score : after(node, pod, -1);
  }
  int gpu_to_share(const GpuNodeState& node, const PodRequest& pod, RandomStream&) const override {
    return best_share(node, pod).gpu;
  }

 private:
  struct Share {
    std::int64_t score = 0;
    int gpu = -1;
  };
  Share best_share(const GpuNodeState& node, const PodRequest& pod) const {
    Share best;
    for (int g = 0; g < node.gpus; ++g) {
      const auto* begin = node.gpu_left.data();
      if (node.gpu_left[g] < pod.gpu_milli) continue;
      if (std::find(begin, begin + g, node.gpu_left[g]) != begin + g) continue;  // as good as it
      const std::int64_t score = after(node, pod, g);
      if (best.gpu < 0 || score > best.score) best = {score, g};
    }
    return best;
  }
  std::int64_t after(const GpuNodeState& node, const PodRequest& pod, int gpu) const {
    GpuNodeState then = node;
    take(then, pod, gpu);
    const double gained = (node.fragmented - fragmentation_.amount(then)) / kWholeGpu;
    return static_cast<std::int64_t>(1.0 / (1.0 + std::exp(-gained)) * kMostScore);
  }
  const Fragmentation& fragmentation_;
};

}  // namespace

int PlacementPolicy::gpu_to_share(const GpuNodeState& node, const PodRequest& pod,
                                  RandomStream&) const {
  int best = -1;
  for (int g = 0; g < node.gpus; ++g)
    if (node.gpu_left[g] >= pod.gpu_milli && (best < 0 || node.gpu_left[g] < node.gpu_left[best]))
      best = g;
  return best;
}

std::unique_ptr<PlacementPolicy> make_placement(SchedulingPolicy policy,
                                                const Fragmentation& fragmentation) {
  switch (policy) {
    case SchedulingPolicy::fgd:
      return std::make_unique<FragmentationGradientDescent>(fragmentation);
    case SchedulingPolicy::best_fit:
      return std::make_unique<BestFit>();
    case SchedulingPolicy::dot_product:
      return std::make_unique<DotProduct>();
    case SchedulingPolicy::gpu_packing:
      return std::make_unique<GpuPacking>();
    case SchedulingPolicy::gpu_clustering:
      return std::make_unique<GpuClustering>();
    case SchedulingPolicy::random:
      return std::make_unique<RandomNode>();
    case SchedulingPolicy::fifo:
    case SchedulingPolicy::easy_backfill:
    case SchedulingPolicy::sjf:
    case SchedulingPolicy::srtf:
    case SchedulingPolicy::las:
    case SchedulingPolicy::slurm:
    case SchedulingPolicy::kueue:
    case SchedulingPolicy::kubernetes:
    case SchedulingPolicy::fifo_perf:
    case SchedulingPolicy::max_min_fairness:
    case SchedulingPolicy::max_min_fairness_perf:
    case SchedulingPolicy::max_min_fairness_water_filling_perf:
    case SchedulingPolicy::finish_time_fairness:
    case SchedulingPolicy::finish_time_fairness_perf:
    case SchedulingPolicy::min_total_duration:
    case SchedulingPolicy::min_total_duration_perf:
      break;
  }
  RECKON_CHECK(false);
  return nullptr;
}

}  // namespace reckon
