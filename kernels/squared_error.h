#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Mean squared error of each sample's `size` elements.
namespace reckon::gpu {

/// losses[b] = mean of (x - target)^2; a block a sample. |error| <= 2^-24 (size / 256 + 16) of it,
/// beside that of the differences.
template <class E>
[[nodiscard]] cudaError_t squared_error_forward(std::int64_t batch, std::int64_t size, const E* x,
                                                const float* targets, float* losses,
                                                cudaStream_t stream);
/// dx = slopes[b] * 2 (x - target) / size.
template <class E>
[[nodiscard]] cudaError_t squared_error_backward(std::int64_t batch, std::int64_t size, const E* x,
                                                 const float* targets, const float* slopes, E* dx,
                                                 bool accumulate, cudaStream_t stream);

}  // namespace reckon::gpu
