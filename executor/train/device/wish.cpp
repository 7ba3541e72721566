#include "executor/train/device/wish.h"

#include <fmt/format.h>

namespace reckon {

std::string why_too_few_devices(DeviceWish wish, int ranks, int devices) {
  const bool none_wanted =
      wish == DeviceWish::cpu || (wish == DeviceWish::automatic && devices == 0);
  if (none_wanted || devices >= ranks) return "";
  return fmt::format(
      "the worker has {} ranks, one a GPU, and {} here: give it as many (nvidia.com/gpu: {}, "
      "CUDA_VISIBLE_DEVICES), change workload.strategy.accelerators_per_worker, or --device cpu",
      ranks, devices == 1 ? "1 GPU is" : fmt::format("{} GPUs are", devices), ranks);
}

std::string what_is_apart(const std::vector<std::pair<int, int>>& pairs, const std::string& link) {
  if (pairs.empty()) return "";
  const std::string more = pairs.size() == 1 ? ""
                           : pairs.size() == 2
                               ? ", and 1 more pair,"
                               : fmt::format(", and {} more pairs,", pairs.size() - 1);
  return fmt::format(
      "GPUs {} and {}{} cannot reach each other's memory: what they exchange goes through the "
      "host's, and the plan counts on {} between them (nvidia-smi topo -m)",
      pairs.front().first, pairs.front().second, more, link);
}

}  // namespace reckon
