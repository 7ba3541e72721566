#pragma once
#include <cstdint>

#include "kernels/bf16.h"

// Division by a number that is the same for a whole launch. An element's place in an image takes
// several, and a division of 64 bits is about a hundred instructions on a device.
namespace reckon::gpu {

/// n / by for 0 <= n <= largest, by >= 1: by a product and a shift where `largest` has 31 bits
/// [Granlund & Montgomery 1994, "Division by invariant integers using multiplication", PLDI,
/// theorem 4.2 with N = 31: m = ceil(2^(31 + l) / by), l = ceil(log2 by); m has 32 bits], else as
/// usual.
struct Divisor {
  std::int64_t by = 1;
  std::uint32_t multiplier = 0;  // 0: as usual
  int shift = 0;

  Divisor(std::int64_t by_, std::int64_t largest) : by(by_) {
    if (largest >= std::int64_t{1} << 31 || by >= std::int64_t{1} << 31) return;
    int l = 0;
    while ((std::int64_t{1} << l) < by) ++l;
    shift = 31 + l;
    const std::uint64_t power = std::uint64_t{1} << shift, d = static_cast<std::uint64_t>(by);
    multiplier = static_cast<std::uint32_t>((power + d - 1) / d);
  }
  RECKON_BOTH std::int64_t quotient(std::int64_t n) const {
    if (multiplier == 0) return n / by;
    return static_cast<std::int64_t>((std::uint64_t{static_cast<std::uint32_t>(n)} * multiplier) >>
                                     shift);
  }
  /// n / by where `largest` has 31 bits for certain: in inner loops the other way would take
  /// registers even where it is never gone.
  RECKON_BOTH int quotient31(int n) const {
    return static_cast<int>((std::uint64_t{static_cast<std::uint32_t>(n)} * multiplier) >> shift);
  }
  /// n becomes the quotient, the rest is returned.
  RECKON_BOTH std::int64_t take_rest(std::int64_t& n) const {
    const std::int64_t q = quotient(n), rest = n - q * by;
    n = q;
    return rest;
  }
};

}  // namespace reckon::gpu
