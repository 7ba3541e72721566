#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/words.h"

namespace reckon {

/// What computes: `automatic` is a CUDA device where there is one that can do the work.
enum class DeviceWish { automatic, cpu, cuda };
constexpr auto words_of(DeviceWish) {
  return std::array{Word<DeviceWish>{"auto", DeviceWish::automatic},
                    Word<DeviceWish>{"cpu", DeviceWish::cpu},
                    Word<DeviceWish>{"cuda", DeviceWish::cuda}};
}

/// Why the ranks of a worker cannot have a device each of so many, where some are here; "": they
/// can, or compute on CPUs: as there is none, or as they were told.
std::string why_too_few_devices(DeviceWish wish, int ranks, int devices);

/// What it means that these pairs of a worker's devices cannot reach each other's memory, where the
/// plan counts on `link` between them; "": there are none.
std::string what_is_apart(const std::vector<std::pair<int, int>>& pairs, const std::string& link);

}  // namespace reckon
