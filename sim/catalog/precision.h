#pragma once
#include <array>

#include "sim/base/quantity.h"
#include "sim/base/words.h"

namespace reckon {

/// What the multiplications run in. fp16/bf16/fp8/... mean mixed precision: weights are kept in
/// fp32 as well.
enum class Precision { fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4 };
inline constexpr std::array kPrecisions{Precision::fp32, Precision::tf32, Precision::fp16,
                                        Precision::bf16, Precision::fp8,  Precision::mxfp8,
                                        Precision::nvfp4};

constexpr auto words_of(Precision) {
  return std::array{
      Word<Precision>{"fp32", Precision::fp32},   Word<Precision>{"tf32", Precision::tf32},
      Word<Precision>{"fp16", Precision::fp16},   Word<Precision>{"bf16", Precision::bf16},
      Word<Precision>{"fp8", Precision::fp8},     Word<Precision>{"mxfp8", Precision::mxfp8},
      Word<Precision>{"nvfp4", Precision::nvfp4}, Word<Precision>{"fp4", Precision::nvfp4}};
}

/// Bytes of one activation or working weight: 4 (fp32, tf32), 2 (fp16, bf16), 1 (fp8, mxfp8), 0.5
/// (nvfp4).
Bytes bytes_per_element(Precision p);

}  // namespace reckon
