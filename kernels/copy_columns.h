#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Some columns of one matrix to some of another: what puts features beside each other, and takes
// some of them.
namespace reckon::gpu {

/// Row-major; `first` column of those that are meant, `stride` elements from row to row.
template <class E>
struct Columns {
  E* data = nullptr;
  std::int64_t first = 0, stride = 0;
};
/// to[r][to.first + j] = from[r][from.first + j] for j < count, or added to what is there, with one
/// rounding to E. No element of `from` is one of `to`.
template <class E>
[[nodiscard]] cudaError_t copy_columns(std::int64_t rows, std::int64_t count, Columns<const E> from,
                                       Columns<E> to, bool accumulate, cudaStream_t stream);

}  // namespace reckon::gpu
