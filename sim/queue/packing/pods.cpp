#include "sim/queue/packing/pods.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "sim/base/check.h"

namespace reckon {

int GpuModels::add(const std::string& model) {
  const auto found = std::find(names_.begin(), names_.end(), model);
  if (found != names_.end()) return static_cast<int>(found - names_.begin());
  if (names_.size() == kMostGpuModels) return -1;
  names_.push_back(model);
  return static_cast<int>(names_.size()) - 1;
}

std::uint64_t GpuModels::allowed(const std::string& models) const {
  std::uint64_t mask = 0;
  bool any_named = false;
  std::string_view rest = models;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    const std::string_view name = rest.substr(0, bar);
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
    if (name.empty()) continue;
    any_named = true;
    for (std::size_t k = 0; k < names_.size(); ++k)
      if (names_[k] == name) mask |= std::uint64_t{1} << k;
  }
  return any_named ? mask : ~std::uint64_t{0};
}

std::int64_t GpuNodeState::gpu_left_in_all() const {
  return std::accumulate(gpu_left.begin(), gpu_left.begin() + gpus, std::int64_t{0});
}

int GpuNodeState::gpus_free() const {
  return static_cast<int>(std::count(gpu_left.begin(), gpu_left.begin() + gpus, kWholeGpu));
}

GpuNodeState empty_state(const GpuNode& node, int model) {
  RECKON_CHECK(node.gpus <= kMostGpusOfNode);
  GpuNodeState state;
  state.cpu_left = node.cpu_milli;
  state.memory_left = node.memory_mib;
  state.gpus = node.gpus;
  state.model = model;
  std::fill_n(state.gpu_left.begin(), node.gpus, kWholeGpu);
  return state;
}

bool fits(const GpuNodeState& node, const PodRequest& pod, std::uint64_t allowed_models) {
  if (pod.cpu_milli > node.cpu_left || pod.memory_mib > node.memory_left) return false;
  if (pod.gpus == 0) return true;
  if (((allowed_models >> node.model) & 1U) == 0) return false;
  int enough = 0;
  for (int g = 0; g < node.gpus; ++g) enough += node.gpu_left[g] >= pod.gpu_milli ? 1 : 0;
  return enough >= pod.gpus;
}

void take(GpuNodeState& node, const PodRequest& pod, int gpu) {
  node.cpu_left -= pod.cpu_milli;
  node.memory_left -= pod.memory_mib;
  RECKON_CHECK(node.cpu_left >= 0);
  RECKON_CHECK(node.memory_left >= 0);
  if (pod.gpus == 0) return;
  if (pod.shares_a_gpu()) {
    RECKON_CHECK(gpu >= 0 && gpu < node.gpus);
    node.gpu_left[gpu] -= pod.gpu_milli;
    RECKON_CHECK(node.gpu_left[gpu] >= 0);
    ++node.pods[0];
    return;
  }
  int wanted = pod.gpus;
  for (int g = 0; g < node.gpus && wanted > 0; ++g)
    if (node.gpu_left[g] == kWholeGpu) node.gpu_left[g] = 0, --wanted;
  RECKON_CHECK(wanted == 0);
  ++node.pods[pod.gpus];
}

}  // namespace reckon
