#include "kernels/attention/tiles.cuh"

// The forward pass on tiles: a block has 64 rows of a head, and goes through the keys that they
// see.
namespace reckon::gpu {
namespace {

/// Over the four lanes that share a row.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// The online softmax of this thread's two rows.
struct Softmax {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};

/// Scores become probabilities relative to the largest so far; returns what to shrink sums by.
template <int kColumns>
__device__ void next_tile(Softmax& soft, float (&x)[kColumns / 8][4], float (&shrink)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = soft.largest[r];
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
      largest = fmaxf(largest, fmaxf(x[j][2 * r], x[j][2 * r + 1]));
    largest = quad_max(largest);
    const float shift = largest == -INFINITY ? 0.0f : largest;  // nothing seen yet
    shrink[r] = exp2f(soft.largest[r] - shift);
    soft.largest[r] = largest;
    float sum = 0;  // of this thread's columns; the quad's are added at the end
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        x[j][i] = exp2f(x[j][i] - shift);
        sum += x[j][i];
      }
    soft.sum[r] = soft.sum[r] * shrink[r] + sum;
  }
}

template <int W, bool kDrops, class E>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(AttentionShape s, AttentionDropout drop, const E* q, const E* k, const E* v,
                   E* y, float* log_sums) {
  constexpr int kColumns = 64, kTile = kColumns * kTileStride<W>;
  E* q_tile = dynamic_shared<E>();
  E* kv_tiles = q_tile + kRows * kTileStride<W>;  // keys and values, twice
  const std::int64_t b = blockIdx.z, head = blockIdx.y, kv_head = head / (s.heads / s.kv_heads);
  // The longest rows first: blocks start in the order of their numbers.
  const std::int64_t first = std::int64_t{gridDim.x - 1 - blockIdx.x} * kRows;
  const std::int64_t last = first + kRows < s.tokens ? first + kRows : s.tokens;
  const E* keys = k + b * s.seen * s.kv_stride + kv_head * W;
  const E* values = v + b * s.seen * s.kv_stride + kv_head * W;
  const auto load_columns = [&](std::int64_t left, int stage) {
    E* tiles = kv_tiles + stage * 2 * kTile;
    load_tile<W, kColumns>(tiles, keys, s.kv_stride, left, s.seen);
    load_tile<W, kColumns>(tiles + kTile, values, s.kv_stride, left, s.seen);
    end_copies();
  };
  const float scale = scale_of(s) * kLog2e;
  const Seen seen = seen_by(s, first, last);
  std::int64_t left = seen.begin / kColumns * kColumns;
  load_tile<W, kRows>(q_tile, q + b * s.tokens * s.q_stride + head * W, s.q_stride, first,
                      s.tokens);
  load_columns(left, 0);
  Softmax soft;
  float out[W / 8][4] = {};
  for (int stage = 0; left < seen.end; left += kColumns, stage = 1 - stage) {
    wait_for_copies();
    __syncthreads();  // the tiles are there, and all have read those before
    if (left + kColumns < seen.end) load_columns(left + kColumns, 1 - stage);
    const E* k_tile = kv_tiles + stage * 2 * kTile;
    float x[kColumns / 8][4];
    scores<W, kColumns>(x, q_tile, k_tile);
    for_elements<kColumns>(
        all_seen(s, first, kRows, left, kColumns),
        [&](int j, int i) { return sees(s, first + row_of(i), left + column_of(j, i)); },
        [&](int j, int i, bool is_seen) { x[j][i] = is_seen ? x[j][i] * scale : -INFINITY; });
    float shrink[2];
    next_tile<kColumns>(soft, x, shrink);
#pragma unroll
    for (int j = 0; j < W / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[j][i] *= shrink[i / 2];
    if constexpr (kDrops)
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          x[j][i] *= dropout_factor(s, drop, b, head, first + row_of(i), left + column_of(j, i));
    add_product<W, kColumns>(out, x, k_tile + kTile);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = quad_sum(soft.sum[r]);
    const std::int64_t row = first + row_of(2 * r);  // those past the end are not written
    const Seen own = seen_by(s, row, row + 1);
    const bool any = own.begin < own.end;
    const float inverse = any ? 1.0f / sum : 0.0f;
#pragma unroll
    for (int j = 0; j < W / 8; ++j)
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) out[j][i] *= inverse;
    if (row < s.tokens && threadIdx.x % 4 == 0)
      log_sums[(b * s.heads + head) * s.tokens + row] =
          any ? soft.largest[r] * kLn2 + logf(sum) : -INFINITY;
  }
  write_rows<W>(y + b * s.tokens * s.heads * W + head * W, s.heads * W, first, s.tokens, out,
                false);
}

}  // namespace

bool tiles_take(const AttentionShape& s) {
  if (!device_multiplies_tiles()) return false;
  const std::int64_t w = s.head_width;
  return (w == 32 || w == 64 || w == 128) && s.q_stride % 8 == 0 && s.kv_stride % 8 == 0;
}

template <class E>
cudaError_t tiled_forward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                          const E* k, const E* v, E* y, float* log_sums, cudaStream_t stream) {
  const auto run = [&](auto width) {
    constexpr int W = decltype(width)::value;
    return with_dropout(drop, [&](auto dropped) {
      return launch(forward_kernel<W, decltype(dropped)::value, E>,
                    grid_of(s.tokens, s.heads, s.batch), dim3(kThreads), 5 * tile_bytes<W>(kRows),
                    stream, s, drop, q, k, v, y, log_sums);
    });
  };
  if (s.head_width == 32) return run(std::integral_constant<int, 32>{});
  if (s.head_width == 64) return run(std::integral_constant<int, 64>{});
  return run(std::integral_constant<int, 128>{});
}

template cudaError_t tiled_forward<Bf16>(const AttentionShape&, const AttentionDropout&,
                                         const Bf16*, const Bf16*, const Bf16*, Bf16*, float*,
                                         cudaStream_t);
template cudaError_t tiled_forward<Half>(const AttentionShape&, const AttentionDropout&,
                                         const Half*, const Half*, const Half*, Half*, float*,
                                         cudaStream_t);

}  // namespace reckon::gpu
