#include "kernels/attention/attention.h"

#include "kernels/attention/common.cuh"

// Key by key: a warp a row, for every element type and width. Tiles on tensor cores are in
// attention/tiles_*.cu.
namespace reckon::gpu {
namespace {

constexpr int kWarps = 4;
constexpr int kParts = 8;  // features a lane, so 256 a head

/// A head's vector, spread over the lanes of a warp.
struct Vector {
  float at[kParts] = {};
};
template <class E>
__device__ Vector read(const E* from, std::int64_t width) {
  Vector v;
  for (int k = 0; k < kParts; ++k) {
    const std::int64_t i = k * 32 + threadIdx.x % 32;
    if (i < width) v.at[k] = to_float(from[i]);
  }
  return v;
}
template <class E>
__device__ void write(E* to, std::int64_t width, const Vector& v, bool accumulate) {
  for (int k = 0; k < kParts; ++k) {
    const std::int64_t i = k * 32 + threadIdx.x % 32;
    if (i < width) to[i] = put(accumulate ? to[i] : E{}, accumulate, v.at[k]);
  }
}
__device__ float dot(const Vector& a, const Vector& b) {
  float sum = 0;
  for (int k = 0; k < kParts; ++k) sum += a.at[k] * b.at[k];
  return warp_sum(sum);
}
__device__ void add_multiple(Vector& to, float factor, const Vector& v) {
  for (int k = 0; k < kParts; ++k) to.at[k] += factor * v.at[k];
}

/// Which row of which head of which sample a warp has; row < 0: none.
struct Mine {
  std::int64_t b, head, row;
};
__device__ Mine my_row(std::int64_t batch, std::int64_t heads, std::int64_t rows) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  return i < batch * heads * rows ? Mine{i / rows / heads, i / rows % heads, i % rows}
                                  : Mine{0, 0, -1};
}
unsigned warps_for(std::int64_t rows) { return blocks_for(rows, kWarps); }

template <class E>
__global__ void forward_kernel(AttentionShape s, AttentionDropout drop, const E* q, const E* k,
                               const E* v, E* y, float* log_sums) {
  const Mine m = my_row(s.batch, s.heads, s.tokens);
  if (m.row < 0) return;
  const std::int64_t w = s.head_width, kv_head = m.head / (s.heads / s.kv_heads);
  const Vector query = read(q + (m.b * s.tokens + m.row) * s.q_stride + m.head * w, w);
  const float scale = scale_of(s);
  const Seen seen = seen_by(s, m.row, m.row + 1);
  float largest = -3.402823466e38f, sum = 0;
  Vector out;
  for (std::int64_t j = seen.begin; j < seen.end; ++j) {
    const std::int64_t at = (m.b * s.seen + j) * s.kv_stride + kv_head * w;
    const float score = scale * dot(query, read(k + at, w));
    if (score > largest) {
      const float shrink = expf(largest - score);
      sum *= shrink;
      for (int i = 0; i < kParts; ++i) out.at[i] *= shrink;
      largest = score;
    }
    const float p = expf(score - largest);
    sum += p;
    const float factor = drops(drop) ? dropout_factor(s, drop, m.b, m.head, m.row, j) : 1.0f;
    add_multiple(out, p * factor, read(v + at, w));
  }
  const bool any = seen.begin < seen.end;
  for (int i = 0; i < kParts; ++i) out.at[i] = any ? out.at[i] / sum : 0.0f;
  write(y + ((m.b * s.tokens + m.row) * s.heads + m.head) * w, w, out, false);
  if (threadIdx.x % 32 == 0)
    log_sums[(m.b * s.heads + m.head) * s.tokens + m.row] = any ? largest + logf(sum) : -INFINITY;
}

/// dots = y . dy, by row and head: the sum of probability times its gradient [Dao 2022, eq. 4].
template <class E>
__global__ void dots_kernel(AttentionShape s, const E* y, const E* dy, float* dots) {
  const Mine m = my_row(s.batch, s.heads, s.tokens);
  if (m.row < 0) return;
  const std::int64_t at = ((m.b * s.tokens + m.row) * s.heads + m.head) * s.head_width;
  const float sum = dot(read(y + at, s.head_width), read(dy + at, s.head_width));
  if (threadIdx.x % 32 == 0) dots[(m.b * s.heads + m.head) * s.tokens + m.row] = sum;
}

template <class E>
__global__ void query_gradient_kernel(AttentionShape s, AttentionDropout drop, const E* q,
                                      const E* k, const E* v, const E* dy, const float* log_sums,
                                      const float* dots, E* dq, bool accumulate) {
  const Mine m = my_row(s.batch, s.heads, s.tokens);
  if (m.row < 0) return;
  const std::int64_t w = s.head_width, kv_head = m.head / (s.heads / s.kv_heads);
  const std::int64_t at_q = (m.b * s.tokens + m.row) * s.q_stride + m.head * w;
  const Vector query = read(q + at_q, w);
  const Vector slope = read(dy + ((m.b * s.tokens + m.row) * s.heads + m.head) * w, w);
  const std::int64_t at_row = (m.b * s.heads + m.head) * s.tokens + m.row;
  const float scale = scale_of(s);
  const Seen seen = seen_by(s, m.row, m.row + 1);
  Vector sum;
  for (std::int64_t j = seen.begin; j < seen.end; ++j) {
    const std::int64_t at = (m.b * s.seen + j) * s.kv_stride + kv_head * w;
    const Vector key = read(k + at, w);
    const float p = expf(scale * dot(query, key) - log_sums[at_row]);
    const float factor = drops(drop) ? dropout_factor(s, drop, m.b, m.head, m.row, j) : 1.0f;
    const float dp = factor * dot(slope, read(v + at, w));
    add_multiple(sum, scale * p * (dp - dots[at_row]), key);
  }
  write(dq + at_q, w, sum, accumulate);
}

template <class E>
__global__ void key_gradient_kernel(AttentionShape s, AttentionDropout drop, const E* q, const E* k,
                                    const E* v, const E* dy, const float* log_sums,
                                    const float* dots, AttentionGradients<E> g) {
  const Mine m = my_row(s.batch, s.kv_heads, s.seen);
  if (m.row < 0) return;
  const std::int64_t w = s.head_width, shared = s.heads / s.kv_heads;
  const std::int64_t at = (m.b * s.seen + m.row) * s.kv_stride + m.head * w;
  const Vector key = read(k + at, w), value = read(v + at, w);
  const float scale = scale_of(s);
  const Seen rows = rows_that_see(s, m.row, m.row + 1);
  Vector key_sum, value_sum;
  for (std::int64_t head = m.head * shared; head < (m.head + 1) * shared; ++head)
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      const Vector query = read(q + (m.b * s.tokens + i) * s.q_stride + head * w, w);
      const Vector slope = read(dy + ((m.b * s.tokens + i) * s.heads + head) * w, w);
      const std::int64_t at_row = (m.b * s.heads + head) * s.tokens + i;
      const float p = expf(scale * dot(query, key) - log_sums[at_row]);
      const float factor = drops(drop) ? dropout_factor(s, drop, m.b, head, i, m.row) : 1.0f;
      add_multiple(value_sum, p * factor, slope);
      add_multiple(key_sum, scale * p * (factor * dot(slope, value) - dots[at_row]), query);
    }
  if (g.dk != nullptr) write(g.dk + at, w, key_sum, g.accumulate_k);
  if (g.dv != nullptr) write(g.dv + at, w, value_sum, g.accumulate_v);
}

template <class E>
bool on_tiles(const AttentionShape& s, const E* q, const E* k, const E* v, const E* y) {
  return sizeof(E) == 2 && tiles_take(s) && aligned16(q, k, v, y);
}

}  // namespace

template <class E>
cudaError_t attention_forward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                              const E* k, const E* v, E* y, float* log_sums, cudaStream_t stream) {
  if (s.head_width > 32 * kParts || s.heads % s.kv_heads != 0) return cudaErrorInvalidValue;
  if constexpr (sizeof(E) == 2)
    if (on_tiles(s, q, k, v, y)) return tiled_forward(s, drop, q, k, v, y, log_sums, stream);
  return launch(forward_kernel<E>, dim3(warps_for(s.batch * s.heads * s.tokens)), dim3(32 * kWarps),
                0, stream, s, drop, q, k, v, y, log_sums);
}

template <class E>
cudaError_t attention_backward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                               const E* k, const E* v, const E* y, const E* dy,
                               const float* log_sums, float* dots, const AttentionGradients<E>& g,
                               cudaStream_t stream) {
  if (s.head_width > 32 * kParts || s.heads % s.kv_heads != 0) return cudaErrorInvalidValue;
  const dim3 block(32 * kWarps), rows(warps_for(s.batch * s.heads * s.tokens));
  cudaError_t status = launch(dots_kernel<E>, rows, block, 0, stream, s, y, dy, dots);
  if (status != cudaSuccess) return status;
  if constexpr (sizeof(E) == 2)
    if (on_tiles(s, q, k, v, dy) && aligned16(g.dq, g.dk, g.dv))
      return tiled_backward(s, drop, q, k, v, dy, log_sums, dots, g, stream);
  if (g.dq != nullptr)
    status = launch(query_gradient_kernel<E>, rows, block, 0, stream, s, drop, q, k, v, dy,
                    log_sums, dots, g.dq, g.accumulate_q);
  if (status != cudaSuccess || (g.dk == nullptr && g.dv == nullptr)) return status;
  return launch(key_gradient_kernel<E>, dim3(warps_for(s.batch * s.kv_heads * s.seen)), block, 0,
                stream, s, drop, q, k, v, dy, log_sums, dots, g);
}

#define RECKON_ATTENTION_FOR(E)                                                               \
  template cudaError_t attention_forward<E>(const AttentionShape&, const AttentionDropout&,   \
                                            const E*, const E*, const E*, E*, float*,         \
                                            cudaStream_t);                                    \
  template cudaError_t attention_backward<E>(                                                 \
      const AttentionShape&, const AttentionDropout&, const E*, const E*, const E*, const E*, \
      const E*, const float*, float*, const AttentionGradients<E>&, cudaStream_t)
RECKON_ATTENTION_FOR(float);
RECKON_ATTENTION_FOR(Bf16);
RECKON_ATTENTION_FOR(Half);

}  // namespace reckon::gpu
