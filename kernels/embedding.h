#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"

// Tables of vectors: look-up, its gradient in an order that does not depend on the device, learned
// positions. Exact but for one rounding to E and the sums in float.
namespace reckon::gpu {

/// Rows of a table that are here, of those that ids count; by default all.
struct TableRows {
  std::int64_t first = 0, count = std::int64_t{1} << 62;
};
/// Where the ids of each row of vectors are among the numbers of the samples (record_id.h): of a
/// sample `rows` rows, side by side from its number `first` on, `each` ids a row.
struct IdPlaces {
  std::int64_t rows = 1, each = 1, first = 0;
  std::int64_t stride = 1;  // numbers of a sample
  RECKON_BOTH std::int64_t at(std::int64_t row) const {
    return row / rows * stride + first + row % rows * each;
  }
};
/// y[r] = the sum of table[id - part.first] over the ids of row r that are here: y (rows, width),
/// table (.., width). In the order of the ids, in float, one rounding to E.
template <class E>
[[nodiscard]] cudaError_t embedding_forward(std::int64_t rows, std::int64_t width,
                                            const float* numbers, const IdPlaces& ids,
                                            const E* table, E* y, cudaStream_t stream,
                                            TableRows part = {});

/// Which rows read which vector, vectors in groups: group g is rows order[starts[g]] ...
/// order[starts[g + 1] - 1] of vector ids[g]. Made on the host by group_ids(), in device memory.
struct IdGroups {
  std::int64_t groups = 0;
  const std::int32_t *ids = nullptr, *starts = nullptr, *order = nullptr;
};
/// gradient[id] += sum of dy[r] over the rows of id, in the order of the rows. A block a group.
template <class E>
[[nodiscard]] cudaError_t embedding_backward(std::int64_t width, const IdGroups& groups,
                                             const E* dy, float* gradient, cudaStream_t stream);

/// y[b][i] = x[b][i] + table[i] for i < size.
template <class E>
[[nodiscard]] cudaError_t position_forward(std::int64_t batch, std::int64_t size, const E* x,
                                           const E* table, E* y, cudaStream_t stream);
/// gradient[i] += sum over b of dy[b][i], in the order of b.
template <class E>
[[nodiscard]] cudaError_t position_backward(std::int64_t batch, std::int64_t size, const E* dy,
                                            float* gradient, cudaStream_t stream);

/// Features i and i + rotated / 2 of each head are turned by position * theta^(-2i / rotated)
/// [Su 2021, eq. 15]; direction -1 turns back: the gradient. x, y: (batch, tokens, heads,
/// head_width).
struct RotaryShape {
  std::int64_t batch = 1, tokens = 1, heads = 1, head_width = 1, rotated = 1;
  double theta = 10000;    // base of the angles
  std::int64_t first = 0;  // position of the first token
};
template <class E>
[[nodiscard]] cudaError_t rotary(const RotaryShape& s, int direction, const E* x, E* y,
                                 bool accumulate, cudaStream_t stream);

}  // namespace reckon::gpu
