#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/dropout_stream.h"

// Element by element over n numbers, 16 bytes a thread: memory bound, one rounding to E each (the
// error bound is E's roundoff, and 2^-21 of the device's exp and tanh). `accumulate`: added to what
// is there. The references are loops of one line, in the tests.
namespace reckon::gpu {

enum class Curve { relu, gelu, silu, tanh, sigmoid };  // ActivationKind of the catalogue

template <class E>
[[nodiscard]] cudaError_t activation_forward(Curve curve, const E* x, E* y, std::int64_t n,
                                             cudaStream_t stream);
/// dx = dy * slope. `kept`: x for gelu and silu, y for relu, tanh and sigmoid.
template <class E>
[[nodiscard]] cudaError_t activation_backward(Curve curve, const E* kept, const E* dy, E* dx,
                                              bool accumulate, std::int64_t n, cudaStream_t stream);
/// out = a + b; out = a * b; out = factor * a
template <class E>
[[nodiscard]] cudaError_t add(const E* a, const E* b, E* out, std::int64_t n, cudaStream_t stream);
template <class E>
[[nodiscard]] cudaError_t multiply(const E* a, const E* b, E* out, bool accumulate, std::int64_t n,
                                   cudaStream_t stream);
template <class E>
[[nodiscard]] cudaError_t scale(const E* a, float factor, E* out, bool accumulate, std::int64_t n,
                                cudaStream_t stream);
/// The same numbers in float; for E = float a copy.
template <class E>
[[nodiscard]] cudaError_t widen(const E* from, float* to, std::int64_t n, cudaStream_t stream);
/// Rounds; for E = float a copy.
template <class E>
[[nodiscard]] cudaError_t round_to(const float* from, E* to, std::int64_t n, cudaStream_t stream);
/// to (batch, points, channels) of from (batch, channels, points), as the runtime has images.
template <class From, class To>
[[nodiscard]] cudaError_t channels_last(const From* from, To* to, std::int64_t batch,
                                        std::int64_t channels, std::int64_t points, bool accumulate,
                                        cudaStream_t stream);
/// Which elements of a whole sample are here, in its order: from `first` on, side by side; or, of a
/// table of rows, `columns` of each row, whose begins are `stride` apart in the whole sample.
struct SamplePlace {
  std::int64_t first = 0, columns = 0, stride = 0;  // columns 0: side by side
};
/// out = in * factor of the mask; samples of which `size` elements are here, the first of which is
/// number first_sample of the step. The same mask as dropout_factors() of
/// executor/train/layers/dropout_mask.h: an element has the factor of its place in the whole
/// sample. `whole_sample`: all of a sample has the factor of its first element (stochastic depth).
template <class E>
[[nodiscard]] cudaError_t dropout(const DropoutStream& mask, std::int64_t first_sample,
                                  std::int64_t batch, std::int64_t size, bool whole_sample,
                                  const E* in, E* out, bool accumulate, cudaStream_t stream,
                                  const SamplePlace& place = {});
/// sums[j] += sum over rows of values[row][j]: the gradient of a bias. scratch:
/// bias_gradient_scratch() floats.
template <class E>
[[nodiscard]] cudaError_t bias_gradient(const E* values, std::int64_t rows, std::int64_t columns,
                                        float* sums, float* scratch, cudaStream_t stream);
std::int64_t bias_gradient_scratch(std::int64_t rows, std::int64_t columns);

}  // namespace reckon::gpu
