#pragma once
#include <array>

#include "sim/base/words.h"

namespace reckon {

/// What computes: `automatic` is a CUDA device where there is one that can do the work.
enum class DeviceWish { automatic, cpu, cuda };
constexpr auto words_of(DeviceWish) {
  return std::array{Word<DeviceWish>{"auto", DeviceWish::automatic},
                    Word<DeviceWish>{"cpu", DeviceWish::cpu},
                    Word<DeviceWish>{"cuda", DeviceWish::cuda}};
}

}  // namespace reckon
