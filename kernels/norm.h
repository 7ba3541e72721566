#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"

// Layer norm and root mean square norm, one row at a time. References: layer_norm and rms_norm of
// kernels/reference/layers.h, and norm_backward of kernels/reference/backward.h.
namespace reckon::gpu {

/// x, y, dy, dx: (rows, width); weight, bias: (width); E is float or Bf16. A warp a row; sums in
/// float. Memory bound. Against the reference on the same inputs: |error| <= (u + 2^-23 (width / 32
/// + 16)) * |y's terms|, u the roundoff of E.
struct NormShape {
  std::int64_t rows = 0, width = 0;
  bool centred = true;    // layer norm; else root mean square norm, which has no mean and no bias
  float epsilon = 1e-5f;  // added to the variance, or to the mean square
};

/// mean (null where not centred), inverse: (rows), kept for the backward pass. bias may be null.
template <class E>
[[nodiscard]] cudaError_t norm_forward(const NormShape& s, const E* x, const E* weight,
                                       const E* bias, E* y, float* mean, float* inverse,
                                       cudaStream_t stream);
/// dx is set, or added to.
template <class E>
[[nodiscard]] cudaError_t norm_backward_input(const NormShape& s, const E* x, const E* weight,
                                              const float* mean, const float* inverse, const E* dy,
                                              E* dx, bool accumulate, cudaStream_t stream);
/// Adds to dweight and dbias (width), each may be null. scratch: norm_scratch(s) floats.
template <class E>
[[nodiscard]] cudaError_t norm_backward_weight(const NormShape& s, const E* x, const float* mean,
                                               const float* inverse, const E* dy, float* dweight,
                                               float* dbias, float* scratch, cudaStream_t stream);
std::int64_t norm_scratch(const NormShape& s);

}  // namespace reckon::gpu
