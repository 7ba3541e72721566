#pragma once
#include "kernels/attention/attention.h"
#include "kernels/device.h"

// What the kernels of attention share.
namespace reckon::gpu {

constexpr float kLog2e = 1.44269504088896341f, kLn2 = 0.69314718055994531f;

__device__ inline bool sees(const AttentionShape& s, std::int64_t row, std::int64_t column) {
  if (row >= s.tokens || column >= s.seen) return false;
  if (!s.causal) return true;
  return column <= row + s.ahead && (s.window == 0 || column > row + s.ahead - s.window);
}
/// Every one of `rows` rows from `row` on sees every one of `columns` columns from `column` on:
/// most tiles, which need no look at each element.
__device__ inline bool all_seen(const AttentionShape& s, std::int64_t row, int rows,
                                std::int64_t column, int columns) {
  if (row + rows > s.tokens || column + columns > s.seen) return false;
  if (!s.causal) return true;
  return column + columns - 1 <= row + s.ahead &&
         (s.window == 0 || column > row + rows - 1 + s.ahead - s.window);
}
/// Columns that any of rows [first, last) sees: [begin, end); none where begin >= end.
struct Seen {
  std::int64_t begin, end;
};
__device__ inline Seen seen_by(const AttentionShape& s, std::int64_t first, std::int64_t last) {
  if (!s.causal) return {0, s.seen};
  const std::int64_t place = first + s.ahead, end = last + s.ahead;
  const std::int64_t begin = s.window == 0 || place < s.window ? 0 : place - s.window + 1;
  return {begin, end < 0 ? 0 : end < s.seen ? end : s.seen};
}
/// Rows that see any of columns [first, last).
__device__ inline Seen rows_that_see(const AttentionShape& s, std::int64_t first,
                                     std::int64_t last) {
  if (!s.causal) return {0, s.tokens};
  const std::int64_t begin = first - s.ahead;
  const std::int64_t end = s.window == 0 ? s.tokens : last - 1 + s.window - s.ahead;
  return {begin < 0 ? 0 : begin, end < 0 ? 0 : end < s.tokens ? end : s.tokens};
}

/// 0, or 1 / (1 - rate), of a score.
__device__ inline float dropout_factor(const AttentionShape& s, const AttentionDropout& drop,
                                       std::int64_t b, std::int64_t head, std::int64_t row,
                                       std::int64_t column) {
  const std::int64_t rows = drop.all > 0 ? drop.all : s.tokens;
  const std::int64_t columns = drop.all > 0 ? drop.all : s.seen;
  const std::int64_t element = ((drop.first_head + head) * rows + drop.first_row + row) * columns +
                               drop.first_column + column;
  const DropoutBlock block = dropout_block(drop.mask, drop.first_sample + b, element / 4);
  const auto k = static_cast<int>(element % 4);
  const bool keeps = k == 0   ? block.keeps[0]
                     : k == 1 ? block.keeps[1]
                     : k == 2 ? block.keeps[2]
                              : block.keeps[3];
  return keeps ? drop.mask.kept : 0.0f;
}
__host__ __device__ inline bool drops(const AttentionDropout& drop) {
  return drop.mask.threshold > 0;
}

__device__ inline float scale_of(const AttentionShape& s) {
  return 1.0f / sqrtf(static_cast<float>(s.head_width));
}

// attention/tiles_*.cu: Bf16 and Half on tensor cores. True where they take the shape.
bool tiles_take(const AttentionShape& s);
template <class E>
cudaError_t tiled_forward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                          const E* k, const E* v, E* y, float* log_sums, cudaStream_t stream);
template <class E>
cudaError_t tiled_backward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                           const E* k, const E* v, const E* dy, const float* log_sums,
                           const float* dots, const AttentionGradients<E>& gradients,
                           cudaStream_t stream);

}  // namespace reckon::gpu
