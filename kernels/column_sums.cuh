#pragma once
#include <algorithm>

#include "kernels/device.h"

// Sums over the rows of a matrix, one a column, in an order that does not depend on the device:
// first over chunks of rows, then over chunks. For gradients of weights and for batch statistics.
namespace reckon::gpu {

constexpr int kColumnsOfBlock = 32, kRowsOfBlock = 8;

/// So many chunks that a device is busy; a function of the shape alone.
inline std::int64_t column_chunks(std::int64_t rows) {
  return std::clamp<std::int64_t>(rows / 128, 1, 256);
}
/// Floats of scratch memory for S sums a column.
inline std::int64_t column_scratch(std::int64_t rows, std::int64_t columns, int S) {
  return column_chunks(rows) * columns * S;
}

/// f(row, column, sums): adds to S sums. partial: (chunks, S, columns).
template <int S, class F>
__global__ void column_partials(F f, std::int64_t rows, std::int64_t columns, float* partial) {
  __shared__ float shared[S][kRowsOfBlock][kColumnsOfBlock + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnsOfBlock + x;
  const std::int64_t chunk = (rows + gridDim.y - 1) / gridDim.y;
  const std::int64_t begin = blockIdx.y * chunk;
  const std::int64_t end = begin + chunk < rows ? begin + chunk : rows;
  float sums[S] = {};
  if (column < columns)
    for (std::int64_t r = begin + y; r < end; r += kRowsOfBlock) f(r, column, sums);
  for (int s = 0; s < S; ++s) shared[s][y][x] = sums[s];
  __syncthreads();
  if (y != 0 || column >= columns) return;
  for (int s = 0; s < S; ++s) {
    float sum = 0;
    for (int k = 0; k < kRowsOfBlock; ++k) sum += shared[s][k][x];
    partial[(std::int64_t{blockIdx.y} * S + s) * columns + column] = sum;
  }
}

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

/// scratch: column_scratch(rows, columns, S) floats.
template <int S, class F, class Finish>
cudaError_t sum_columns(F f, Finish finish, std::int64_t rows, std::int64_t columns, float* scratch,
                        cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const std::int64_t chunks = column_chunks(rows);
  const unsigned tiles = blocks_for(columns, kColumnsOfBlock);
  const dim3 block(kColumnsOfBlock, kRowsOfBlock);
  const cudaError_t status =
      launch(column_partials<S, F>, dim3(tiles, static_cast<unsigned>(chunks)), block, 0, stream, f,
             rows, columns, scratch);
  if (status != cudaSuccess) return status;
  return launch(column_totals<S, Finish>, dim3(tiles), block, 0, stream, finish, chunks, columns,
                static_cast<const float*>(scratch));
}

}  // namespace reckon::gpu
