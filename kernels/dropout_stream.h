#pragma once
#include <Random123/philox.h>

#include <cstdint>

#include "kernels/bf16.h"

// The random numbers behind every dropout, on CPUs and on devices: Philox4x32-10 [Salmon 2011], one
// 32-bit number an element, a pure function of what is named here.
namespace reckon {

struct DropoutStream {
  std::uint32_t key[2] = {0, 0};
  std::uint32_t layer = 0, step = 0;
  std::uint64_t threshold = 0;  // numbers below it drop
  float kept = 1;               // 1 / (1 - rate)
};

/// rate in [0, 1).
/// `rate`: probability that an element is dropped.
inline DropoutStream dropout_stream(std::uint64_t seed, std::int64_t step, std::uint32_t layer,
                                    double rate) {
  constexpr std::uint32_t kDropout = 0x44524f50;  // keeps these streams apart from all others
  return {.key = {static_cast<std::uint32_t>(seed) ^ kDropout,
                  static_cast<std::uint32_t>(seed >> 32) ^ static_cast<std::uint32_t>(step >> 32)},
          .layer = layer,
          .step = static_cast<std::uint32_t>(step),
          .threshold = static_cast<std::uint64_t>(rate * 0x1p32),
          .kept = static_cast<float>(1 / (1 - rate))};
}

struct DropoutBlock {
  bool keeps[4];
};
/// Whether elements 4 quad ... 4 quad + 3 of a sample are kept.
RECKON_BOTH inline DropoutBlock dropout_block(const DropoutStream& s, std::int64_t sample,
                                              std::int64_t quad) {
  const r123::Philox4x32::key_type key{{s.key[0], s.key[1]}};
  const r123::Philox4x32::ctr_type counter{
      {static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(sample), s.layer, s.step}};
  const r123::Philox4x32::ctr_type numbers = r123::Philox4x32{}(counter, key);
  DropoutBlock block{};
  for (unsigned k = 0; k < 4; ++k) block.keeps[k] = numbers.v[k] >= s.threshold;
  return block;
}

}  // namespace reckon
