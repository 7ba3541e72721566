#pragma once
#include <algorithm>
#include <span>

#include "executor/comm/communicator.h"
#include "sim/base/check.h"

// Collectives of a Communicator for float and for double, the reference that float is held to.
namespace reckon {

/// Bits of numbers, for collectives that only move them.
inline std::span<float> as_floats(std::span<float> values) { return values; }
inline std::span<const float> as_floats(std::span<const float> values) { return values; }
inline std::span<float> as_floats(std::span<double> values) {
  return {reinterpret_cast<float*>(values.data()), 2 * values.size()};
}
inline std::span<const float> as_floats(std::span<const double> values) {
  return {reinterpret_cast<const float*>(values.data()), 2 * values.size()};
}

template <class T>
void all_gather_in(Communicator& group, std::span<const T> mine, std::span<T> all) {
  group.all_gather(as_floats(mine), as_floats(all));
}

/// `all` is unspecified afterwards.
inline void reduce_scatter_in(Communicator& group, std::span<float> all, std::span<float> mine) {
  group.reduce_scatter(all, mine);
}
inline void reduce_scatter_in(Communicator& group, std::span<double> all, std::span<double> mine) {
  RECKON_CHECK(all.size() == mine.size() * static_cast<std::size_t>(group.size()));
  group.all_reduce(all);
  std::ranges::copy(all.subspan(mine.size() * static_cast<std::size_t>(group.rank()), mine.size()),
                    mine.begin());
}

}  // namespace reckon
