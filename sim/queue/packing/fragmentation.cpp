#include "sim/queue/packing/fragmentation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Order of equally frequent requests: PodResource.Less() of pkg/type/resource.go.
auto size_of_request(const PodRequest& p) {
  return std::tie(p.cpu_milli, p.gpu_milli, p.gpus, p.models);
}

}  // namespace

std::vector<TypicalPod> typical_pods(std::span<const PodRequest> pods, double popularity) {
  std::map<PodRequest, std::int64_t> counts;
  for (PodRequest pod : pods) {
    pod.memory_mib = 0;
    ++counts[std::move(pod)];
  }
  std::vector<std::pair<PodRequest, std::int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    if (a.second != b.second) return a.second > b.second;
    return size_of_request(b.first) < size_of_request(a.first);
  });
  const double wanted = popularity * double(pods.size());
  std::vector<TypicalPod> typical;
  double covered = 0;
  for (const auto& [request, count] : sorted) {
    if (covered >= wanted) break;
    covered += double(count);
    typical.push_back({request, double(count)});
  }
  const double all = double(pods.size());
  for (TypicalPod& t : typical) t.share /= all;
  if (typical.size() < sorted.size())
    for (TypicalPod& t : typical) t.share /= covered / all;
  return typical;
}

Fragmentation::Fragmentation(std::span<const TypicalPod> pods, const GpuModels& models) {
  for (const TypicalPod& pod : pods)
    if (pod.request.gpus > 0) demands_.push_back(pod.request.gpu_milli);
  std::sort(demands_.begin(), demands_.end());
  demands_.erase(std::unique(demands_.begin(), demands_.end()), demands_.end());
  for (const TypicalPod& pod : pods) {
    const PodRequest& r = pod.request;
    const auto demand = std::lower_bound(demands_.begin(), demands_.end(), r.gpu_milli);
    typical_.push_back({r.cpu_milli, models.allowed(r.models), r.gpus,
                        static_cast<int>(demand - demands_.begin()), pod.share});
  }
}

double Fragmentation::amount(const GpuNodeState& node) const {
  const std::int64_t left = node.gpu_left_in_all();
  if (left == 0) return 0;
  // By demand: how many GPUs can serve it, and what is left on those that cannot.
  constexpr std::size_t kMostDemands = kWholeGpu;
  std::array<std::pair<int, double>, kMostDemands> by_demand;
  RECKON_CHECK(demands_.size() <= kMostDemands);
  for (std::size_t d = 0; d < demands_.size(); ++d) {
    int enough = 0;
    std::int64_t too_little = 0;
    for (int g = 0; g < node.gpus; ++g) {
      const bool serves = node.gpu_left[g] >= demands_[d];
      enough += serves ? 1 : 0;
      too_little += serves ? 0 : node.gpu_left[g];
    }
    by_demand[d] = {enough, double(too_little)};
  }
  // Added up by reason and in the reasons' order, as frag.go does it: a score is cut to a whole
  // number, and the last bit decides between equals.
  enum { lacks_both, lacks_gpu, lacks_cpu, no_gpu_wanted, no_gpu_and_lacks_cpu, model, kReasons };
  std::array<double, kReasons> by_reason{};
  for (const Typical& t : typical_) {
    const bool cpu = node.cpu_left >= t.cpu_milli;
    if (t.gpus == 0) {
      by_reason[cpu ? no_gpu_wanted : no_gpu_and_lacks_cpu] += t.share * double(left);
      continue;
    }
    const auto& [enough, too_little] = by_demand[t.demand];
    const bool gpu = enough >= t.gpus;
    if (((t.models >> node.model) & 1U) == 0)
      by_reason[model] += t.share * double(left);
    else if (gpu && cpu)
      by_reason[lacks_gpu] += t.share * too_little;
    else
      by_reason[gpu ? lacks_cpu : cpu ? lacks_gpu : lacks_both] += t.share * double(left);
  }
  return std::accumulate(by_reason.begin(), by_reason.end(), 0.0);
}

}  // namespace reckon
