#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"

// Batch normalisation over the rows of (rows, channels): points of images, channels last.
// References: batch_norm of kernels/reference/layers.h (whose channels are in front), and
// batch_norm_backward of kernels/reference/backward.h.
namespace reckon::gpu {

struct BatchNormShape {
  std::int64_t rows = 0, channels = 0;
  float epsilon = 1e-5f, momentum = 0.1f;  // added to the variance; weight of a new batch
};
/// Floats of scratch memory for every function here.
std::int64_t batch_norm_scratch(const BatchNormShape& s);

/// mean, inverse (channels) from the batch; the variance is summed in a second pass over centred
/// values. `running` (2 channels: means, unbiased variances) moves by momentum; null: it stays.
template <class E>
[[nodiscard]] cudaError_t batch_norm_measure(const BatchNormShape& s, const E* x, float* mean,
                                             float* inverse, float* running, float* scratch,
                                             cudaStream_t stream);
/// mean, inverse (channels) from the running statistics.
[[nodiscard]] cudaError_t batch_norm_use_running(const BatchNormShape& s, const float* running,
                                                 float* mean, float* inverse, cudaStream_t stream);
/// y = (x - mean) * inverse * weight + bias
template <class E>
[[nodiscard]] cudaError_t batch_norm_apply(const BatchNormShape& s, const E* x, const float* mean,
                                           const float* inverse, const E* weight, const E* bias,
                                           E* y, cudaStream_t stream);
/// Adds to dweight and dbias (channels; null: frozen); dx is set, or added to; null: not wanted.
/// `sums`: (2 channels), the batch's sums of dy * normal and of dy.
template <class E>
[[nodiscard]] cudaError_t batch_norm_backward(const BatchNormShape& s, const E* x,
                                              const float* mean, const float* inverse,
                                              const E* weight, const E* dy, float* sums,
                                              float* dweight, float* dbias, E* dx, bool accumulate,
                                              float* scratch, cudaStream_t stream);

}  // namespace reckon::gpu
