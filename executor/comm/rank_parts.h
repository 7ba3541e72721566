#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

#include "sim/base/check.h"

// How values are divided among ranks, and the one order in which ranks' values are added.
namespace reckon {

struct Part {
  std::size_t first = 0, count = 0;
};
/// Part `rank` of `count` values among `ranks`: sizes differ by one at most, the larger first.
inline Part part_of_rank(std::size_t count, int ranks, int rank) {
  RECKON_CHECK(rank >= 0 && rank < ranks);
  const std::size_t n = std::size_t(ranks), r = std::size_t(rank);
  const std::size_t each = count / n, more = count % n;
  return {.first = r * each + (r < more ? r : more), .count = each + (r < more ? 1 : 0)};
}

/// Which of `ranks`, ascending and without repetition, `rank` is.
inline int rank_in(std::span<const int> ranks, int rank) {
  RECKON_CHECK(std::ranges::adjacent_find(ranks, std::ranges::greater_equal()) == ranks.end());
  const auto at = std::ranges::find(ranks, rank);
  RECKON_CHECK(at != ranks.end());
  return int(at - ranks.begin());
}

/// sum[i] += values[i]
template <class T>
void add_to(std::span<T> sum, std::span<const T> values) {
  RECKON_CHECK(sum.size() == values.size());
  T* __restrict to = sum.data();
  const T* __restrict from = values.data();
  for (std::size_t i = 0; i < sum.size(); ++i) to[i] += from[i];
}

}  // namespace reckon
