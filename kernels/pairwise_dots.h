#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Dot products of all pairs of a sample's vectors [Naumov 2019, "Deep Learning Recommendation Model
// for Personalization and Recommendation Systems", section 2.1.3].
namespace reckon::gpu {

inline constexpr int kMostVectors = 64;

/// `vectors` matrices (batch, width), one a vector; pair (i, j), j < i, is number i (i - 1) / 2 + j
/// of a sample's vectors (vectors - 1) / 2.
struct PairShape {
  std::int64_t batch = 1, vectors = 2, width = 1;  // vectors <= kMostVectors
};
template <class E>
struct VectorsOfPairs {
  E* at[kMostVectors] = {};
};
/// y (batch, pairs). Sums in float, column after column: |error| <= 2^-24 width sum |a_x b_x|, and
/// one rounding to E.
template <class E>
[[nodiscard]] cudaError_t pairwise_dots(const PairShape& s, const VectorsOfPairs<const E>& x, E* y,
                                        cudaStream_t stream);
/// dx_i = sum over j of dy(i, j) x_j, in the order of j; null: not wanted. `accumulate`: bit i is
/// set where dx_i is added to. No two of dx are one matrix.
template <class E>
[[nodiscard]] cudaError_t pairwise_dots_gradient(const PairShape& s,
                                                 const VectorsOfPairs<const E>& x, const E* dy,
                                                 const VectorsOfPairs<E>& dx,
                                                 std::uint64_t accumulate, cudaStream_t stream);

}  // namespace reckon::gpu
