#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"

namespace reckon {

/// Some of the numbers 0 .. n - 1, the lowest of which is found. A bit each, and above each 64
/// words one bit a word that says whether it has any: O(log_64 n) each.
class NodeSet {
 public:
  explicit NodeSet(std::size_t n) {
    do {
      n = (n + 63) / 64;
      levels_.emplace_back(n);
    } while (n > 1);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool contains(std::size_t k) const { return (levels_[0][k / 64] & bit(k)) != 0; }
  /// Not there yet.
  void insert(std::size_t k) {
    ++size_;
    for (auto& words : levels_) {
      std::uint64_t& word = words[k / 64];
      const bool had_any = word != 0;
      word |= bit(k);
      if (had_any) return;
      k /= 64;
    }
  }
  /// It is there.
  void erase(std::size_t k) {
    --size_;
    for (auto& words : levels_) {
      std::uint64_t& word = words[k / 64];
      word &= ~bit(k);
      if (word != 0) return;
      k /= 64;
    }
  }
  /// Not of an empty set.
  std::size_t first() const {
    RECKON_CHECK(size_ > 0);
    std::size_t k = 0;
    for (std::size_t level = levels_.size(); level-- > 0;)
      k = 64 * k + static_cast<std::size_t>(std::countr_zero(levels_[level][k]));
    return k;
  }

 private:
  static std::uint64_t bit(std::size_t k) { return std::uint64_t{1} << (k % 64); }

  std::vector<std::vector<std::uint64_t>> levels_;  // the last has one word
  std::size_t size_ = 0;
};

}  // namespace reckon
