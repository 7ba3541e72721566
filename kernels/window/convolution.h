#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/window/pool.h"

// Convolutions of images with channels last, (batch, height, width, channels), as products of
// patches and weights whose patches are never written: a block copies the part of the image that a
// tile of them holds from where it lies into shared memory, and multiplies there on tensor cores
// ("implicit GEMM") [Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning",
// arXiv:1410.0759, section 3]. E: Bf16 or Half; sums are in float, in an order that depends on the
// shape alone. Reference: convolution of kernels/reference/layers.h.
namespace reckon::gpu {

struct ConvolutionShape {
  WindowShape window;    // of the input
  std::int64_t out = 1;  // output channels
  RECKON_BOTH std::int64_t points() const { return window.kernel_h * window.kernel_w; }
  /// Elements of a row of weights, (points, channels) and zeros up to a multiple of eight: what
  /// permute_weight() of pool.h makes where it is its stride_of_row.
  RECKON_BOTH std::int64_t patch() const { return (points() * window.channels + 7) / 8 * 8; }
};

/// The current device has the instructions (sm_80 on), a window has at most 1,024 points, and
/// images, outputs and weights have less than 2^30 elements each. The functions below need it.
bool implicit_convolution_takes(const ConvolutionShape& s);

/// y[b, i, j, o] = bias[o] + sum over u, v, c of w[o, (u, v), c] x[b, i s + u - p, j s + v - p, c].
/// Points outside the image are zeros that are multiplied too, so that a weight that is no number
/// shows there. weight: (out, patch()), aligned to 16 bytes; bias: (out), or null; y: (batch, out
/// points, out). x and y are fastest where they are aligned to 16 bytes, and their channels are
/// multiples of eight.
template <class E>
[[nodiscard]] cudaError_t convolution_forward(const ConvolutionShape& s, const E* x,
                                              const E* weight, const E* bias, E* y,
                                              cudaStream_t stream);
/// dx[b, h, k, c] (+)= sum over the windows over (h, k), by tap and o, of w[o, tap, c] dy[.., o]:
/// gathered, without atomics. Points whose windows have the same taps are one product, s^2 of
/// them, so that no tap is multiplied that a stride leaves out; windows that would lie outside the
/// output are zeros that are multiplied.
template <class E>
[[nodiscard]] cudaError_t convolution_input_gradient(const ConvolutionShape& s, const E* dy,
                                                     const E* weight, E* dx, bool accumulate,
                                                     cudaStream_t stream);
/// gradient (out, channels, points), the order of the weights as they are trained, += the sum over
/// rows of dy and patches. Rows are shared out to blocks, whose sums are added in one order, the
/// same on every device. scratch: convolution_scratch() floats, aligned to 8 bytes.
template <class E>
[[nodiscard]] cudaError_t convolution_weight_gradient(const ConvolutionShape& s, const E* x,
                                                      const E* dy, float* gradient, float* scratch,
                                                      cudaStream_t stream);
std::int64_t convolution_scratch(const ConvolutionShape& s);

}  // namespace reckon::gpu
