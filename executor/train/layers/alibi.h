#pragma once
#include <cmath>
#include <cstdint>

namespace reckon {

/// Slope of a head's distance penalty [Press 2022, arXiv:2108.12409, section 3]: 2^(-8 i / n) for n
/// a power of two, else every second slope of the next power of two fills up (the authors' code).
inline double alibi_slope(std::int64_t head, std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  const auto slope = [](std::int64_t i, std::int64_t n) {
    return std::exp2(-8.0 * static_cast<double>(i + 1) / static_cast<double>(n));
  };
  return head < power ? slope(head, power) : slope(2 * (head - power), 2 * power);
}

}  // namespace reckon
