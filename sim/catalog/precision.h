#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "sim/base/quantity.h"

namespace reckon {

/// What the multiplications run in. fp16/bf16/fp8/... mean mixed precision: weights are kept in
/// fp32 as well.
enum class Precision { fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4 };
inline constexpr std::array kPrecisions{Precision::fp32, Precision::tf32, Precision::fp16,
                                        Precision::bf16, Precision::fp8,  Precision::mxfp8,
                                        Precision::nvfp4};

std::string_view to_text(Precision p);
std::optional<Precision> precision_from_text(std::string_view text);
/// Bytes of one activation or working weight: 4 (fp32, tf32), 2 (fp16, bf16), 1 (fp8, mxfp8), 0.5
/// (nvfp4).
Bytes bytes_per_element(Precision p);

}  // namespace reckon
