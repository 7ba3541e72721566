#pragma once
#include <bit>
#include <cstdint>

// bfloat16: the upper half of a float. Stored in this, computed with in float.
#ifdef __CUDACC__
#define RECKON_BOTH __host__ __device__
#else
#define RECKON_BOTH
#endif

namespace reckon {

struct Bf16 {
  std::uint16_t bits = 0;
};

/// Unit roundoff: half the distance of 1 to the next number.
inline constexpr float kBf16Roundoff = 1.0f / 256;

RECKON_BOTH inline float to_float(float x) { return x; }
RECKON_BOTH inline float to_float(Bf16 x) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(std::uint32_t{x.bits} << 16);
#else
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
#endif
}

template <class E>
RECKON_BOTH inline E from_float(float x);
template <>
RECKON_BOTH inline float from_float<float>(float x) {
  return x;
}
/// To the nearest, ties to even; NaN stays NaN.
template <>
RECKON_BOTH inline Bf16 from_float<Bf16>(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
#ifdef __CUDA_ARCH__
  const std::uint32_t bits = __float_as_uint(x);
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
#endif
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

}  // namespace reckon
