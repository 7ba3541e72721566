#include "kernels/attention/tiles.cuh"

// The backward pass on tiles: the gradient of the queries, then those of keys and values.
namespace reckon::gpu {
namespace {

/// dq = sum over keys of ds k, ds = p (dp - dots) / sqrt(w).
template <int W, int kColumns, bool kDrops, class E>
__global__ void __launch_bounds__(kThreads)
    query_gradient_kernel(AttentionShape s, AttentionDropout drop, const E* q, const E* k,
                          const E* v, const E* dy, const float* log_sums, const float* dots, E* dq,
                          bool accumulate) {
  constexpr int kTile = kColumns * kTileStride<W>;
  E* q_tile = dynamic_shared<E>();
  E* dy_tile = q_tile + kRows * kTileStride<W>;
  E* kv_tiles = dy_tile + kRows * kTileStride<W>;  // keys and values, twice
  const std::int64_t b = blockIdx.z, head = blockIdx.y, kv_head = head / (s.heads / s.kv_heads);
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
  const Seen seen = seen_by(s, first, last);
  std::int64_t left = seen.begin / kColumns * kColumns;
  load_tile<W, kRows>(q_tile, q + b * s.tokens * s.q_stride + head * W, s.q_stride, first,
                      s.tokens);
  load_tile<W, kRows>(dy_tile, dy + b * s.tokens * s.heads * W + head * W, s.heads * W, first,
                      s.tokens);
  load_columns(left, 0);
  const float scale = scale_of(s), power = scale * kLog2e;
  float log_sum[2] = {}, along[2] = {};
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::int64_t row = first + row_of(2 * r), at = (b * s.heads + head) * s.tokens + row;
    if (row < s.tokens) log_sum[r] = log_sums[at] * kLog2e;
    if (row < s.tokens) along[r] = dots[at];
  }
  float out[W / 8][4] = {};
  for (int stage = 0; left < seen.end; left += kColumns, stage = 1 - stage) {
    wait_for_copies();
    __syncthreads();
    if (left + kColumns < seen.end) load_columns(left + kColumns, 1 - stage);
    const E* k_tile = kv_tiles + stage * 2 * kTile;
    float x[kColumns / 8][4], dp[kColumns / 8][4];
    scores<W, kColumns>(x, q_tile, k_tile);
    scores<W, kColumns>(dp, dy_tile, k_tile + kTile);
    for_elements<kColumns>(
        all_seen(s, first, kRows, left, kColumns),
        [&](int j, int i) { return sees(s, first + row_of(i), left + column_of(j, i)); },
        [&](int j, int i, bool is_seen) {
          const float p = is_seen ? exp2f(x[j][i] * power - log_sum[i / 2]) : 0.0f;
          float slope = dp[j][i];
          if constexpr (kDrops)
            slope *= dropout_factor(s, drop, b, head, first + row_of(i), left + column_of(j, i));
          x[j][i] = scale * p * (slope - along[i / 2]);
        });
    add_product<W, kColumns>(out, x, k_tile);
  }
  write_rows<W>(dq + b * s.tokens * s.q_stride + head * W, s.q_stride, first, s.tokens, out,
                accumulate);
}

/// A block has 64 keys of one key and value head, and goes through the rows of all heads that read
/// it. Here the rows of a tile are keys and its columns queries.
template <int W, int kColumns, bool kDrops, class E>
__global__ void __launch_bounds__(kThreads)
    key_gradient_kernel(AttentionShape s, AttentionDropout drop, const E* q, const E* k, const E* v,
                        const E* dy, const float* log_sums, const float* dots,
                        AttentionGradients<E> g) {
  constexpr int kTile = kColumns * kTileStride<W>;
  E* k_tile = dynamic_shared<E>();
  E* v_tile = k_tile + kRows * kTileStride<W>;
  E* tiles = v_tile + kRows * kTileStride<W>;                // queries and slopes, twice
  auto* sums = reinterpret_cast<float*>(tiles + 4 * kTile);  // their log_sums and dots, twice
  const std::int64_t b = blockIdx.z, kv_head = blockIdx.y, shared = s.heads / s.kv_heads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kRows;
  const std::int64_t last = first + kRows < s.seen ? first + kRows : s.seen;
  const std::int64_t at_head = b * s.seen * s.kv_stride + kv_head * W;
  load_tile<W, kRows>(k_tile, k + at_head, s.kv_stride, first, s.seen);
  load_tile<W, kRows>(v_tile, v + at_head, s.kv_stride, first, s.seen);
  const auto load_rows = [&](std::int64_t head, std::int64_t top, int stage) {
    E* q_tile = tiles + stage * 2 * kTile;
    load_tile<W, kColumns>(q_tile, q + b * s.tokens * s.q_stride + head * W, s.q_stride, top,
                           s.tokens);
    load_tile<W, kColumns>(q_tile + kTile, dy + b * s.tokens * s.heads * W + head * W, s.heads * W,
                           top, s.tokens);
    if (threadIdx.x < kColumns) {
      const std::int64_t row = top + threadIdx.x, at = (b * s.heads + head) * s.tokens;
      const bool there = row < s.tokens;
      float* to = sums + stage * 2 * kColumns + threadIdx.x;
      copy_to_shared<4>(to, log_sums + at + (there ? row : 0), there);
      copy_to_shared<4>(to + kColumns, dots + at + (there ? row : 0), there);
    }
    end_copies();
  };
  const float scale = scale_of(s), power = scale * kLog2e;
  const Seen rows = rows_that_see(s, first, last);
  const std::int64_t begin = rows.begin / kColumns * kColumns;
  const std::int64_t tops = (rows.end - begin + kColumns - 1) / kColumns;  // tiles of a head
  std::int64_t head = kv_head * shared, top = begin;
  load_rows(head, top, 0);
  float dk[W / 8][4] = {}, dv[W / 8][4] = {};
  int stage = 0;
  for (std::int64_t t = 0; t < tops * shared; ++t, stage = 1 - stage) {
    wait_for_copies();
    __syncthreads();
    const std::int64_t here = top;
    const std::int64_t here_head = head;
    top += kColumns;
    if (top >= rows.end) {
      top = begin;
      ++head;
    }
    if (t + 1 < tops * shared) load_rows(head, top, 1 - stage);
    const E* q_tile = tiles + stage * 2 * kTile;
    const E* dy_tile = q_tile + kTile;
    const float* log_sum = sums + stage * 2 * kColumns;
    const float* along = log_sum + kColumns;
    float p[kColumns / 8][4], x[kColumns / 8][4];
    scores<W, kColumns>(x, k_tile, q_tile);
    for_elements<kColumns>(
        all_seen(s, here, kColumns, first, kRows),
        [&](int j, int i) { return sees(s, here + column_of(j, i), first + row_of(i)); },
        [&](int j, int i, bool is_seen) {
          p[j][i] = is_seen ? exp2f(x[j][i] * power - log_sum[column_of(j, i)] * kLog2e) : 0.0f;
        });
    scores<W, kColumns>(x, v_tile, dy_tile);  // gradients of the probabilities
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int c = column_of(j, i);
        float factor = 1;
        if constexpr (kDrops)
          factor = dropout_factor(s, drop, b, here_head, here + c, first + row_of(i));
        x[j][i] = scale * p[j][i] * (factor * x[j][i] - along[c]);
        p[j][i] *= factor;
      }
    add_product<W, kColumns>(dv, p, dy_tile);
    add_product<W, kColumns>(dk, x, q_tile);
  }
  if (g.dk != nullptr)
    write_rows<W>(g.dk + at_head, s.kv_stride, first, s.seen, dk, g.accumulate_k);
  if (g.dv != nullptr)
    write_rows<W>(g.dv + at_head, s.kv_stride, first, s.seen, dv, g.accumulate_v);
}

template <int W, class E>
cudaError_t backward(const AttentionShape& s, const AttentionDropout& drop, const E* q, const E* k,
                     const E* v, const E* dy, const float* log_sums, const float* dots,
                     const AttentionGradients<E>& g, cudaStream_t stream) {
  constexpr int kColumns = W > 64 ? 32 : 64;  // what fits into registers
  const std::size_t shared = 2 * tile_bytes<W>(kRows) + 4 * tile_bytes<W>(kColumns);
  return with_dropout(drop, [&](auto dropped) {
    constexpr bool kDrops = decltype(dropped)::value;
    if (g.dq != nullptr) {
      const cudaError_t status =
          launch(query_gradient_kernel<W, kColumns, kDrops, E>, grid_of(s.tokens, s.heads, s.batch),
                 dim3(kThreads), shared, stream, s, drop, q, k, v, dy, log_sums, dots, g.dq,
                 g.accumulate_q);
      if (status != cudaSuccess) return status;
    }
    if (g.dk == nullptr && g.dv == nullptr) return cudaSuccess;
    return launch(key_gradient_kernel<W, kColumns, kDrops, E>, grid_of(s.seen, s.kv_heads, s.batch),
                  dim3(kThreads), shared + 4 * kColumns * sizeof(float), stream, s, drop, q, k, v,
                  dy, log_sums, dots, g);
  });
}

}  // namespace

template <class E>
cudaError_t tiled_backward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                           const E* k, const E* v, const E* dy, const float* log_sums,
                           const float* dots, const AttentionGradients<E>& g, cudaStream_t stream) {
  if (s.head_width == 32) return backward<32>(s, drop, q, k, v, dy, log_sums, dots, g, stream);
  if (s.head_width == 64) return backward<64>(s, drop, q, k, v, dy, log_sums, dots, g, stream);
  return backward<128>(s, drop, q, k, v, dy, log_sums, dots, g, stream);
}

template cudaError_t tiled_backward<Bf16>(const AttentionShape&, const AttentionDropout&,
                                          const Bf16*, const Bf16*, const Bf16*, const Bf16*,
                                          const float*, const float*,
                                          const AttentionGradients<Bf16>&, cudaStream_t);
template cudaError_t tiled_backward<Half>(const AttentionShape&, const AttentionDropout&,
                                          const Half*, const Half*, const Half*, const Half*,
                                          const float*, const float*,
                                          const AttentionGradients<Half>&, cudaStream_t);

}  // namespace reckon::gpu
