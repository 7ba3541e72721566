#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Rows of tokens to the experts that they chose, and the weighted sums of what the experts make of
// them. References: kernels/reference/experts.h.
namespace reckon::gpu {

/// Slot token * top_k + k is the k-th of a token's experts, in ascending order of experts. A row is
/// what one expert gets of one token: there are as many rows as slots.
struct ExpertRows {
  std::int64_t tokens = 0, experts = 0, top_k = 1, width = 1;
  const std::int32_t* row_of = nullptr;     // by slot
  const std::int32_t* slot_of = nullptr;    // by row
  const std::int32_t* expert_of = nullptr;  // by slot
};

/// y (rows, width): each row its token's, of x (tokens, width).
template <class E>
[[nodiscard]] cudaError_t dispatch_rows(const ExpertRows& r, const E* x, E* y, cudaStream_t stream);
/// dx (tokens, width): the sum of a token's rows of dy, in the order of its slots.
template <class E>
[[nodiscard]] cudaError_t dispatch_rows_gradient(const ExpertRows& r, const E* dy, E* dx,
                                                 bool accumulate, cudaStream_t stream);

/// weights (slots): the softmax of a token's scores, (tokens, experts), over its chosen experts
/// (`normalize`), or over all.
template <class E>
[[nodiscard]] cudaError_t expert_weights(const ExpertRows& r, bool normalize, const E* scores,
                                         float* weights, cudaStream_t stream);
/// Of the scores, from `slopes` (slots), the gradients of the weights: p (g - p . g) of a softmax p
/// with the gradient g, zero for experts not chosen.
template <class E>
[[nodiscard]] cudaError_t expert_weights_gradient(const ExpertRows& r, bool normalize,
                                                  const E* scores, const float* slopes, E* dscores,
                                                  bool accumulate, cudaStream_t stream);

/// y (tokens, width): the weighted sum of a token's rows of x, in the order of its slots.
template <class E>
[[nodiscard]] cudaError_t combine_rows(const ExpertRows& r, const float* weights, const E* x, E* y,
                                       cudaStream_t stream);
/// dx (rows, width), null: not wanted; slopes (slots).
template <class E>
[[nodiscard]] cudaError_t combine_rows_gradient(const ExpertRows& r, const float* weights,
                                                const E* x, const E* dy, E* dx, bool accumulate,
                                                float* slopes, cudaStream_t stream);

}  // namespace reckon::gpu
