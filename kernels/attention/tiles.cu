#include <type_traits>

#include "kernels/attention/common.cuh"
#include "kernels/mma.cuh"

// Tiles of 64 rows by kColumns columns, four warps a block, 16 rows a warp; products on tensor
// cores. While a tile is computed with, the next one travels to shared memory. Dropout is a kernel
// of its own: its random numbers, inlined for every element, would not leave the rest in the
// instruction cache.
namespace reckon::gpu {
namespace {

constexpr int kRows = 64, kThreads = 128;

/// rows [first, first + kCount) of a head to shared memory; rows from `limit` on are zeros. There
/// behind wait_for_copies().
template <int W, int kCount, class E>
__device__ void load_tile(E* tile, const E* head, std::int64_t stride, std::int64_t first,
                          std::int64_t limit) {
  constexpr int kChunks = W / 8;  // of 16 bytes
  for (int i = static_cast<int>(threadIdx.x); i < kCount * kChunks; i += kThreads) {
    const int row = i / kChunks, column = i % kChunks * 8;
    const bool there = first + row < limit;
    copy_to_shared<16>(tile + row * kTileStride<W> + column,
                       head + (there ? first + row : 0) * stride + column, there);
  }
}

/// out (16 x kColumns of this warp) = a_tile rows . b_tile rows
template <int W, int kColumns, class E>
__device__ void scores(float (&out)[kColumns / 8][4], const E* a_tile, const E* b_tile) {
  const int row = static_cast<int>(threadIdx.x / 32) * 16;
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) out[j][i] = 0;
#pragma unroll
  for (int k = 0; k < W; k += 16) {
    const FragmentA a = rows_of_tile<W>(a_tile, row, k);
#pragma unroll
    for (int j = 0; j < kColumns / 16; ++j) {
      const FragmentB2 b = transpose_of_tile<W>(b_tile, j * 16, k);
      multiply_add<E>(out[2 * j], a, b, 0);
      multiply_add<E>(out[2 * j + 1], a, b, 1);
    }
  }
}

/// out (16 x W of this warp) += p (16 x kColumns) . tile
template <int W, int kColumns, class E>
__device__ void add_product(float (&out)[W / 8][4], const float (&p)[kColumns / 8][4],
                            const E* tile) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    const float(&low)[4] = p[2 * k], (&high)[4] = p[2 * k + 1];
    const FragmentA a{{two<E>(low[0], low[1]), two<E>(low[2], low[3]), two<E>(high[0], high[1]),
                       two<E>(high[2], high[3])}};
#pragma unroll
    for (int j = 0; j < W / 16; ++j) {
      const FragmentB2 b = columns_of_tile<W>(tile, k * 16, j * 16);
      multiply_add<E>(out[2 * j], a, b, 0);
      multiply_add<E>(out[2 * j + 1], a, b, 1);
    }
  }
}

/// Row and column, in a warp's part of a tile, of element i of fragment j.
__device__ inline int row_of(int i) {
  return static_cast<int>(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4) + i / 2 * 8;
}
__device__ inline int column_of(int j, int i) {
  return j * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}
/// Over the four lanes that share a row.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// Rows [first + ...] of a (.., stride) matrix get the warp's 16 x W sums.
template <int W, class E>
__device__ void write_rows(E* head, std::int64_t stride, std::int64_t first, std::int64_t limit,
                           const float (&sums)[W / 8][4], bool accumulate) {
#pragma unroll
  for (int j = 0; j < W / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const std::int64_t row = first + row_of(i);
      if (row >= limit) continue;
      E* to = head + row * stride + column_of(j, i);
      Pack<E, 2> pack{};
      if (accumulate) pack = load<2>(to);
      pack.at[0] = put(pack.at[0], accumulate, sums[j][i]);
      pack.at[1] = put(pack.at[1], accumulate, sums[j][i + 1]);
      store(to, pack);
    }
}

/// body(j, i, seen) for all elements of a warp's fragments. Nearly all tiles are seen whole, and
/// are not asked element by element.
template <int kColumns, class Sees, class Body>
__device__ void for_elements(bool whole, Sees sees_at, Body body) {
  if (whole) {
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) body(j, i, true);
    return;
  }
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) body(j, i, sees_at(j, i));
}

template <int W>
constexpr std::size_t tile_bytes(int rows) {
  return sizeof(std::uint16_t) * kTileStride<W> * static_cast<std::size_t>(rows);
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
    const float inverse = 1.0f / sum;  // rows past the end are not written
#pragma unroll
    for (int j = 0; j < W / 8; ++j)
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) out[j][i] *= inverse;
    const std::int64_t row = first + row_of(2 * r);
    if (row < s.tokens && threadIdx.x % 4 == 0)
      log_sums[(b * s.heads + head) * s.tokens + row] = soft.largest[r] * kLn2 + logf(sum);
  }
  write_rows<W>(y + b * s.tokens * s.heads * W + head * W, s.heads * W, first, s.tokens, out,
                false);
}

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

dim3 grid_of(std::int64_t rows, std::int64_t heads, std::int64_t batch) {
  return {blocks_for(rows, kRows), static_cast<unsigned>(heads), static_cast<unsigned>(batch)};
}

/// body with whether there is dropout, as a constant.
template <class Body>
cudaError_t with_dropout(const AttentionDropout& drop, Body body) {
  return drops(drop) ? body(std::true_type{}) : body(std::false_type{});
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

bool tiles_take(const AttentionShape& s) {
#ifdef __CUDACC__
  int device = 0, major = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      major < 8)
    return false;
#endif
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

template <class E>
cudaError_t tiled_backward(const AttentionShape& s, const AttentionDropout& drop, const E* q,
                           const E* k, const E* v, const E* dy, const float* log_sums,
                           const float* dots, const AttentionGradients<E>& g, cudaStream_t stream) {
  if (s.head_width == 32) return backward<32>(s, drop, q, k, v, dy, log_sums, dots, g, stream);
  if (s.head_width == 64) return backward<64>(s, drop, q, k, v, dy, log_sums, dots, g, stream);
  return backward<128>(s, drop, q, k, v, dy, log_sums, dots, g, stream);
}

#define RECKON_TILES_FOR(E)                                                                        \
  template cudaError_t tiled_forward<E>(const AttentionShape&, const AttentionDropout&, const E*,  \
                                        const E*, const E*, E*, float*, cudaStream_t);             \
  template cudaError_t tiled_backward<E>(const AttentionShape&, const AttentionDropout&, const E*, \
                                         const E*, const E*, const E*, const float*, const float*, \
                                         const AttentionGradients<E>&, cudaStream_t)
RECKON_TILES_FOR(Bf16);
RECKON_TILES_FOR(Half);

}  // namespace reckon::gpu
