#pragma once
#include "kernels/bf16.h"

// IEEE 754 binary16, fp16 of the plans. Stored in this, computed with in float.
namespace reckon {

struct Half {
  std::uint16_t bits = 0;
};

/// Unit roundoff; the largest number; the smallest whose roundoff is relative (below it numbers are
/// 2^-24 apart).
inline constexpr float kHalfRoundoff = 1.0f / 2048, kHalfLargest = 65504, kHalfNormal = 0x1p-14f;

RECKON_BOTH inline float to_float(Half x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16, rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // The bias of a float's exponent is larger by 112: a product that is exact.
  const float value = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return sign != 0 ? -value : value;
#endif
}

/// To the nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
template <>
RECKON_BOTH inline Half from_float<Half>(float x) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  constexpr std::uint32_t kInfinite = 0x7f800000u, kTooLarge = 0x477ff000u,  // 65520
      kNormal = 0x38800000u, kShift = 112u << 23;
  if (rest > kInfinite) return {0x7fff};
  if (rest >= kTooLarge) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  if (rest < kNormal) {  // behind 1/2 a float's last bit is 2^-24: the sum rounds as it should
    const float sum = std::bit_cast<float>(rest) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000u))};
  }
  const std::uint32_t shifted = rest - kShift;
  return {static_cast<std::uint16_t>(sign | ((shifted + 0xfffu + ((shifted >> 13) & 1u)) >> 13))};
#endif
}

}  // namespace reckon
