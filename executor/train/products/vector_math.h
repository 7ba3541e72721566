#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

// Elementary functions for loops. For float they are written so that the compiler makes vectors of
// them, and an element's result does not depend on where in a vector it falls, which a library's
// own vector functions do not promise. For double, the reference, they are the C library's.
namespace reckon {

/// e^x; relative error below 2e-7 for float in -87.3..88.3. Beyond its powers of two are those of 0
/// and of infinity, and so is the result; of a NaN it is NaN, since no comparison holds. Cody-Waite
/// reduction and the minimax polynomial of the Cephes library (S. L. Moshier, expf.c).
inline float exp_of(float x) {
  constexpr float kLog2e = 1.44269504088896341f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to whole numbers
  x = x < -88.0f ? -88.0f : x;           // 2^-127, whose bits are those of 0
  x = x > 89.0f ? 89.0f : x;             // 2^128, whose bits are those of infinity
  const float shifted = x * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float e = p * r * r + r + 1.0f;
  // The low bits of `shifted` are n as a whole number.
  const std::int32_t power =
      std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  return e * std::bit_cast<float>((power + 127) << 23);
}
inline double exp_of(double x) { return std::exp(x); }

/// 1 / (1 + e^-x)
template <class T>
T sigmoid_of(T x) {
  return T{1} / (T{1} + exp_of(-x));
}

/// tanh x = 2 sigmoid(2x) - 1; absolute error below 2e-7 for float.
inline float tanh_of(float x) { return 2.0f * sigmoid_of(2.0f * x) - 1.0f; }
inline double tanh_of(double x) { return std::tanh(x); }

}  // namespace reckon
