#include "executor/train/data/order.h"

#include <Random123/philox.h>

#include <algorithm>
#include <bit>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr int kRounds = 6;

/// A permutation of [0, 4^half_bits).
std::uint64_t permute(std::uint64_t seed, std::int64_t epoch, int half_bits, std::uint64_t x) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = x >> half_bits, right = x & mask;
  const r123::Philox4x32::key_type key{
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const r123::Philox4x32::ctr_type counter{
        {static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch),
         0x4f524452u ^ static_cast<std::uint32_t>(epoch >> 32)}};
    const std::uint64_t next = left ^ (r123::Philox4x32{}(counter, key)[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

std::int64_t sample_at(std::uint64_t seed, std::int64_t samples, std::int64_t position) {
  RECKON_CHECK(samples > 0);
  RECKON_CHECK(position >= 0);
  const auto n = static_cast<std::uint64_t>(samples);
  const int half_bits = std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2);
  RECKON_CHECK(half_bits <= 32);
  auto x = static_cast<std::uint64_t>(position % samples);
  do x = permute(seed, position / samples, half_bits, x);
  while (x >= n);
  return static_cast<std::int64_t>(x);
}

}  // namespace reckon
