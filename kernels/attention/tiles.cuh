#pragma once
#include <type_traits>

#include "kernels/attention/common.cuh"
#include "kernels/mma.cuh"

// Tiles of 64 rows by kColumns columns, four warps a block, 16 rows a warp; products on tensor
// cores. While a tile is computed with, the next one travels to shared memory. Dropout is a kernel
// of its own: its random numbers, inlined for every element, would not leave the rest in the
// instruction cache.
namespace reckon::gpu {

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

inline dim3 grid_of(std::int64_t rows, std::int64_t heads, std::int64_t batch) {
  return {blocks_for(rows, kRows), static_cast<unsigned>(heads), static_cast<unsigned>(batch)};
}

/// body with whether there is dropout, as a constant.
template <class Body>
cudaError_t with_dropout(const AttentionDropout& drop, Body body) {
  return drops(drop) ? body(std::true_type{}) : body(std::false_type{});
}

}  // namespace reckon::gpu
