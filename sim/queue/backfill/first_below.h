#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace reckon {

/// Numbers at places 0 .. n - 1, some of them empty, of which the first below a bound is found: a
/// segment tree of minima. O(log n) each.
class FirstBelow {
 public:
  static constexpr std::int64_t kEmpty = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  explicit FirstBelow(std::size_t places)
      : leaves_(std::bit_ceil(std::max<std::size_t>(places, 1))), least_(2 * leaves_, kEmpty) {}

  /// `value` below kEmpty.
  void set(std::size_t place, std::int64_t value) { write(place, value); }
  void clear(std::size_t place) { write(place, kEmpty); }
  bool empty() const { return least_[1] == kEmpty; }

  /// The first place from `from` on whose number is below `bound`; kNowhere: there is none.
  std::size_t find(std::size_t from, std::int64_t bound = kEmpty) const {
    if (from >= leaves_ || least_[1] >= bound) return kNowhere;
    std::size_t node = from + leaves_;
    while (least_[node] >= bound) {
      while (node % 2 == 1) node /= 2;  // nothing further to the right below this parent
      if (node == 0) return kNowhere;
      ++node;
    }
    while (node < leaves_) node = least_[2 * node] < bound ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }

 private:
  void write(std::size_t place, std::int64_t value) {
    std::size_t node = place + leaves_;
    least_[node] = value;
    for (node /= 2; node > 0; node /= 2) {
      const std::int64_t least = std::min(least_[2 * node], least_[2 * node + 1]);
      if (least_[node] == least) return;
      least_[node] = least;
    }
  }

  std::size_t leaves_;
  std::vector<std::int64_t> least_;  // by node of the tree; the root is 1, leaves are the last
};

}  // namespace reckon
