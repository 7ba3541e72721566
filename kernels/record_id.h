#pragma once
#include "kernels/bf16.h"

// Whole numbers among the floats of a sample: ids of tables' rows. Up to 2^24 an id is the number
// itself; larger ones, which a float would round, are the negative float whose bits count them.
// Both stay what they are in double and back. Never rounded to 16 bits.
namespace reckon {

/// Ids are smaller: from here on the bits are those of infinity.
inline constexpr std::int64_t kMostIds = 0x7f800000;  // 2.1e9

RECKON_BOTH inline float record_number(std::int64_t id) {
  constexpr std::int64_t kExact = std::int64_t{1} << 24;
  if (id <= kExact) return static_cast<float>(id);
  const auto bits = static_cast<std::uint32_t>(id);
#ifdef __CUDA_ARCH__
  return -__uint_as_float(bits);
#else
  return -std::bit_cast<float>(bits);
#endif
}

RECKON_BOTH inline std::int64_t record_id(float number) {
  if (number >= 0) return static_cast<std::int64_t>(number);
#ifdef __CUDA_ARCH__
  return std::int64_t{__float_as_uint(-number)};
#else
  return std::int64_t{std::bit_cast<std::uint32_t>(-number)};
#endif
}

}  // namespace reckon
