#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Some rows of each sample: x (batch, rows, width), y (batch, count, width). `at`: (batch, count)
// rows of their sample, in [0, rows); null: the first `count`.
namespace reckon::gpu {

struct RowSelection {
  std::int64_t batch = 0, rows = 0, count = 0, width = 0;
  const std::int32_t* at = nullptr;
};

template <class E>
[[nodiscard]] cudaError_t select_rows(const RowSelection& s, const E* x, E* y, cudaStream_t stream);
/// dx gets the rows of dy, zeros elsewhere, or is added to. A row that is selected twice gets both,
/// one after the other.
template <class E>
[[nodiscard]] cudaError_t select_rows_gradient(const RowSelection& s, const E* dy, E* dx,
                                               bool accumulate, cudaStream_t stream);

}  // namespace reckon::gpu
