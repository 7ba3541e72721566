#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"

// Softmax cross entropy over (rows, classes) of logits, for large vocabularies: one reading of the
// logits in the forward pass (largest and sum in one go [Milakov & Gimelshein 2018,
// arXiv:1805.02867, algorithm 3]), one reading and one writing in the backward pass. The softmax is
// never stored. References: softmax_cross_entropy of kernels/reference/layers.h and
// softmax_cross_entropy_backward of kernels/reference/backward.h.
namespace reckon::gpu {

/// `stride`: elements from a row of logits, or of dx, to the next; at least `classes`. What lies
/// between is not read; in dx it becomes zero.
/// targets: (rows) classes, as whole numbers. log_sums, losses: (rows), natural logarithms. A class
/// that does not exist gives a NaN loss. |error of a loss| <= 2^-24 (classes / 256 + 16) + 2^-22
/// |largest logit|.
template <class E>
[[nodiscard]] cudaError_t cross_entropy_forward(std::int64_t rows, std::int64_t classes,
                                                std::int64_t stride, const E* logits,
                                                const float* targets, float* log_sums,
                                                float* losses, cudaStream_t stream);
/// dx = slope * (softmax - 1 at the target); slope: of the loss of sample row / rows_of_sample,
/// divided by rows_of_sample.
template <class E>
[[nodiscard]] cudaError_t cross_entropy_backward(std::int64_t rows, std::int64_t classes,
                                                 std::int64_t stride, const E* logits,
                                                 const float* targets, const float* log_sums,
                                                 const float* slopes, std::int64_t rows_of_sample,
                                                 E* dx, bool accumulate, cudaStream_t stream);
/// means[b] = mean of `size` losses of each of `batch` samples.
[[nodiscard]] cudaError_t mean_losses(std::int64_t batch, std::int64_t size, const float* losses,
                                      float* means, cudaStream_t stream);

}  // namespace reckon::gpu
