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

}  // namespace reckon
