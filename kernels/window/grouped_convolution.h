#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/window/pool.h"

// Convolutions whose channels are in groups, each with weights of its own, depthwise ones among
// them. A group has few channels, so the work is reading the image, not a matrix product: each
// thread sums one element from the image, without patches. Images have channels last, (batch,
// height, width, channels). Reference: convolution of kernels/reference/layers.h.
namespace reckon::gpu {

struct GroupedShape {
  WindowShape window;    // of the input: window.channels are all groups'
  std::int64_t out = 1;  // output channels of all groups
  std::int64_t groups = 1;
  RECKON_BOTH std::int64_t group_in() const { return window.channels / groups; }
  RECKON_BOTH std::int64_t group_out() const { return out / groups; }
  RECKON_BOTH std::int64_t points() const { return window.kernel_h * window.kernel_w; }
};

/// Padding is zeros that are multiplied too, so that an infinite weight or gradient shows there as
/// it does where patches are products. y[b, i, j, o] = bias[o] + sum over c, u, v of w[o, c, u, v]
/// x[b, i s + u - p, j s + v - p, g(o) * group_in + c]. weight: (out, group_in, points); bias:
/// (out), or null.
template <class E>
[[nodiscard]] cudaError_t grouped_convolution_forward(const GroupedShape& s, const E* x,
                                                      const E* weight, const E* bias, E* y,
                                                      cudaStream_t stream);
/// dx: (batch, height, width, channels); every element is gathered, in one order.
template <class E>
[[nodiscard]] cudaError_t grouped_convolution_input_gradient(const GroupedShape& s, const E* dy,
                                                             const E* weight, E* dx,
                                                             bool accumulate, cudaStream_t stream);
/// gradient (out, group_in, points) += ...; scratch: grouped_convolution_scratch() floats.
template <class E>
[[nodiscard]] cudaError_t grouped_convolution_weight_gradient(const GroupedShape& s, const E* x,
                                                              const E* dy, float* gradient,
                                                              float* scratch, cudaStream_t stream);
std::int64_t grouped_convolution_scratch(const GroupedShape& s);

}  // namespace reckon::gpu
