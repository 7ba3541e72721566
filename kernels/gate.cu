#include "kernels/gate.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kGateThreads = 256;
constexpr int kGateColumns = 32, kGateRows = 8;

template <class E>
__global__ void gate_kernel(GateShape s, const E* x, const E* gate, E* out, bool accumulate,
                            std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::int64_t row = i / s.channels;  // of all samples
  const std::int64_t at = s.by_row ? row : row / s.rows * s.channels + i % s.channels;
  out[i] = put(accumulate ? out[i] : E{}, accumulate, to_float(x[i]) * to_float(gate[at]));
}

/// A block has 32 channels of a sample.
template <class E>
__global__ void channel_gate_gradient_kernel(GateShape s, const E* x, const E* dy, E* dgate,
                                             bool accumulate) {
  __shared__ float shared[kGateRows][kGateColumns + 1];
  const int column = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t channel = std::int64_t{blockIdx.x} * kGateColumns + column;
  const std::int64_t sample = blockIdx.y;
  float sum = 0;
  if (channel < s.channels)
    for (std::int64_t r = y; r < s.rows; r += kGateRows) {
      const std::int64_t i = (sample * s.rows + r) * s.channels + channel;
      sum += to_float(dy[i]) * to_float(x[i]);
    }
  shared[y][column] = sum;
  __syncthreads();
  if (y != 0 || channel >= s.channels) return;
  for (int k = 1; k < kGateRows; ++k) sum += shared[k][column];
  E& out = dgate[sample * s.channels + channel];
  out = put(accumulate ? out : E{}, accumulate, sum);
}

/// A warp a row.
template <class E>
__global__ void row_gate_gradient_kernel(GateShape s, const E* x, const E* dy, E* dgate,
                                         bool accumulate, std::int64_t rows) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  const unsigned lane = threadIdx.x % 32;
  float sum = 0;
  for (std::int64_t c = lane; c < s.channels; c += 32)
    sum += to_float(dy[row * s.channels + c]) * to_float(x[row * s.channels + c]);
  sum = warp_sum(sum);
  if (lane == 0) dgate[row] = put(accumulate ? dgate[row] : E{}, accumulate, sum);
}

}  // namespace

template <class E>
cudaError_t gate(const GateShape& s, const E* x, const E* gate, E* out, bool accumulate,
                 cudaStream_t stream) {
  const std::int64_t n = s.batch * s.rows * s.channels;
  return launch(gate_kernel<E>, dim3(blocks_for(n, kGateThreads)), dim3(kGateThreads), 0, stream, s,
                x, gate, out, accumulate, n);
}
template <class E>
cudaError_t gate_gradient(const GateShape& s, const E* x, const E* dy, E* dgate, bool accumulate,
                          cudaStream_t stream) {
  if (s.by_row) {
    const std::int64_t rows = s.batch * s.rows;
    return launch(row_gate_gradient_kernel<E>, dim3(blocks_for(rows, kGateThreads / 32)),
                  dim3(kGateThreads), 0, stream, s, x, dy, dgate, accumulate, rows);
  }
  return launch(channel_gate_gradient_kernel<E>,
                dim3(blocks_for(s.channels, kGateColumns), static_cast<unsigned>(s.batch)),
                dim3(kGateColumns, kGateRows), 0, stream, s, x, dy, dgate, accumulate);
}

#define RECKON_GATE_FOR(E)                                                                    \
  template cudaError_t gate<E>(const GateShape&, const E*, const E*, E*, bool, cudaStream_t); \
  template cudaError_t gate_gradient<E>(const GateShape&, const E*, const E*, E*, bool,       \
                                        cudaStream_t)
RECKON_GATE_FOR(float);
RECKON_GATE_FOR(Bf16);
RECKON_GATE_FOR(Half);

}  // namespace reckon::gpu
