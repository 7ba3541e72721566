#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"

// Pooling and patches of images with channels last, (batch, height, width, channels). Every
// gradient is gathered by the input point that gets it, so sums have one order. References: pool
// and convolution of kernels/reference/layers.h, whose channels are in front.
namespace reckon::gpu {

struct WindowShape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;
  std::int64_t kernel_h = 1, kernel_w = 1, stride = 1, padding_h = 0, padding_w = 0;
  RECKON_BOTH std::int64_t out_height() const {
    return (height + 2 * padding_h - kernel_h) / stride + 1;
  }
  RECKON_BOTH std::int64_t out_width() const {
    return (width + 2 * padding_w - kernel_w) / stride + 1;
  }
};

/// y, and for the backward pass the input point (in the image) of each largest: (batch, out points,
/// channels). The first of equals wins; a NaN is passed on.
template <class E>
[[nodiscard]] cudaError_t max_pool_forward(const WindowShape& s, const E* x, E* y,
                                           std::int32_t* points, cudaStream_t stream);
template <class E>
[[nodiscard]] cudaError_t max_pool_backward(const WindowShape& s, const std::int32_t* points,
                                            const E* dy, E* dx, bool accumulate,
                                            cudaStream_t stream);
/// Padding counts as zeros.
template <class E>
[[nodiscard]] cudaError_t average_pool_forward(const WindowShape& s, const E* x, E* y,
                                               cudaStream_t stream);
template <class E>
[[nodiscard]] cudaError_t average_pool_backward(const WindowShape& s, const E* dy, E* dx,
                                                bool accumulate, cudaStream_t stream);

/// Rows of patches for samples [first, first + s.batch) of the pointers given: columns (batch * out
/// points, stride_of_row) hold (kernel_h, kernel_w, channels), then zeros up to stride_of_row.
template <class E>
[[nodiscard]] cudaError_t gather_patches(const WindowShape& s, std::int64_t stride_of_row,
                                         const E* x, E* columns, cudaStream_t stream);
/// The reverse: dx of each point is the sum over the patches that it lies in.
template <class E>
[[nodiscard]] cudaError_t scatter_patches(const WindowShape& s, std::int64_t stride_of_row,
                                          const E* columns, E* dx, bool accumulate,
                                          cudaStream_t stream);
/// Weights (out, in, points) -> (out, stride_of_row) as patches have them: (points, in), then
/// zeros.
template <class E>
[[nodiscard]] cudaError_t permute_weight(std::int64_t out, std::int64_t in, std::int64_t points,
                                         std::int64_t stride_of_row, const E* weight, E* to,
                                         cudaStream_t stream);
/// gradient (out, in, points) += permuted (out, stride_of_row)
[[nodiscard]] cudaError_t add_permuted_gradient(std::int64_t out, std::int64_t in,
                                                std::int64_t points, std::int64_t stride_of_row,
                                                const float* permuted, float* gradient,
                                                cudaStream_t stream);

}  // namespace reckon::gpu
