#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Losses of the elements by themselves: of each sample the mean over its `size` elements.
namespace reckon::gpu {

/// logistic: of a number x and whether it is so, t, log(1 + e^x) - t x, in the form that does not
/// overflow: max(x, 0) - t x + log(1 + e^-|x|).
enum class ElementLoss { squared, logistic };

/// losses[b] = mean of (x - target)^2, or of the logistic loss; a block a sample. |error| <=
/// 2^-24 (size / 256 + 16) of it, beside that of the differences, and 2^-21 of each logistic loss.
template <class E>
[[nodiscard]] cudaError_t element_loss_forward(ElementLoss kind, std::int64_t batch,
                                               std::int64_t size, const E* x, const float* targets,
                                               float* losses, cudaStream_t stream);
/// dx = slopes[b] * 2 (x - target) / size, or slopes[b] * (sigmoid(x) - target) / size.
template <class E>
[[nodiscard]] cudaError_t element_loss_backward(ElementLoss kind, std::int64_t batch,
                                                std::int64_t size, const E* x, const float* targets,
                                                const float* slopes, E* dx, bool accumulate,
                                                cudaStream_t stream);

}  // namespace reckon::gpu
