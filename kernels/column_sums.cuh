#pragma once
#include <algorithm>

#include "kernels/device.h"

// Sums over the rows of a matrix, one a column, in an order that does not depend on the device:
// first over chunks of rows, then over chunks. For gradients of weights and for batch statistics.
namespace reckon::gpu {

constexpr int kSumThreads = 256;

/// So many chunks that a device is busy; a function of the shape alone.
inline std::int64_t column_chunks(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 128, 1, 1024);
}
/// Floats of scratch memory for S sums a column.
inline std::int64_t column_scratch(std::int64_t rows, std::int64_t columns, int S) {
  return column_chunks(rows) * columns * S;
}

/// f(row, column, sums): adds to S sums of each of N columns from `column` on. A block has
/// blockDim.x times N columns and as many rows at a time as it has threads for. partial: (chunks,
/// S, columns).
template <int S, int N, class F>
__global__ void column_partials(F f, std::int64_t rows, std::int64_t columns, float* partial) {
  __shared__ float shared[S][kSumThreads * N];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int lanes = static_cast<int>(blockDim.x), rows_of_block = static_cast<int>(blockDim.y);
  const std::int64_t first = std::int64_t{blockIdx.x} * lanes * N, column = first + x * N;
  const std::int64_t chunk = (rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t begin = blockIdx.y * chunk;
  const std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
  float sums[S][N] = {};
  if (column < columns) {
    std::int64_t r = begin + y;
    for (; r + 3 * rows_of_block < end; r += 4 * rows_of_block)  // four loads under way
#pragma unroll
      for (int k = 0; k < 4; ++k) f(r + k * rows_of_block, column, sums);
    for (; r < end; r += rows_of_block) f(r, column, sums);
  }
  const int wide = lanes * N;
  for (int s = 0; s < S; ++s)
    for (int k = 0; k < N; ++k) shared[s][y * wide + x * N + k] = sums[s][k];
  __syncthreads();
  const int thread = y * lanes + x;
  if (thread >= wide || first + thread >= columns) return;
  for (int s = 0; s < S; ++s) {
    float sum = 0;
    for (int k = 0; k < rows_of_block; ++k) sum += shared[s][k * wide + thread];
    partial[(std::int64_t{blockIdx.y} * S + s) * columns + first + thread] = sum;
  }
}

constexpr int kColumnsOfBlock = 32, kRowsOfBlock = 8;

/// finish(column, sums): what becomes of them.
template <int S, class Finish>
__global__ void column_totals(Finish finish, std::int64_t chunks, std::int64_t columns,
                              const float* partial) {
  __shared__ float shared[S][kRowsOfBlock][kColumnsOfBlock + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnsOfBlock + x;
  float sums[S] = {};
  if (column < columns)
    for (std::int64_t c = y; c < chunks; c += kRowsOfBlock)
      for (int s = 0; s < S; ++s) sums[s] += partial[(c * S + s) * columns + column];
  for (int s = 0; s < S; ++s) shared[s][y][x] = sums[s];
  __syncthreads();
  if (y != 0 || column >= columns) return;
  for (int s = 0; s < S; ++s) {
    sums[s] = 0;
    for (int k = 0; k < kRowsOfBlock; ++k) sums[s] += shared[s][k][x];
  }
  finish(column, sums);
}

/// N columns a thread, which `columns` must be a multiple of. scratch: column_scratch(rows,
/// columns, S) floats.
template <int S, int N, class F, class Finish>
cudaError_t sum_columns(F f, Finish finish, std::int64_t rows, std::int64_t columns, float* scratch,
                        cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const std::int64_t chunks = column_chunks(rows);
  unsigned lanes = 1;
  while (lanes < 32 && lanes * N < columns) lanes *= 2;
  const dim3 block(lanes, kSumThreads / lanes);
  const dim3 grid(blocks_for(columns, lanes * N), static_cast<unsigned>(chunks));
  const cudaError_t status =
      launch(column_partials<S, N, F>, grid, block, 0, stream, f, rows, columns, scratch);
  if (status != cudaSuccess) return status;
  return launch(column_totals<S, Finish>, dim3(blocks_for(columns, kColumnsOfBlock)),
                dim3(kColumnsOfBlock, kRowsOfBlock), 0, stream, finish, chunks, columns,
                static_cast<const float*>(scratch));
}

/// sum_columns() of terms that read rows of E: packs where rows are made of them and `aligned`.
template <int S, class E, class F, class Finish>
cudaError_t sum_columns_of(bool aligned, F f, Finish finish, std::int64_t rows,
                           std::int64_t columns, float* scratch, cudaStream_t stream) {
  if (aligned && columns % kPack<E> == 0)
    return sum_columns<S, kPack<E>>(f, finish, rows, columns, scratch, stream);
  return sum_columns<S, 1>(f, finish, rows, columns, scratch, stream);
}

}  // namespace reckon::gpu
