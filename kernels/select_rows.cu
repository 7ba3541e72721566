#include "kernels/select_rows.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

__device__ inline std::int64_t row_of_selected(const RowSelection& s, std::int64_t b,
                                               std::int64_t k) {
  return s.at == nullptr ? k : std::int64_t{s.at[b * s.count + k]};
}

template <class E>
__global__ void forward_kernel(RowSelection s, const E* x, E* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= s.batch * s.count * s.width) return;
  const std::int64_t row = i / s.width, b = row / s.count;
  y[i] = x[(b * s.rows + row_of_selected(s, b, row % s.count)) * s.width + i % s.width];
}

/// A thread a feature of a sample: no two write to one place.
template <class E>
__global__ void backward_kernel(RowSelection s, const E* dy, E* dx, bool accumulate) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= s.batch * s.width) return;
  const std::int64_t b = i / s.width, j = i % s.width;
  E* to = dx + b * s.rows * s.width + j;
  if (!accumulate)
    for (std::int64_t row = 0; row < s.rows; ++row) to[row * s.width] = from_float<E>(0.0f);
  for (std::int64_t k = 0; k < s.count; ++k) {
    E& sum = to[row_of_selected(s, b, k) * s.width];
    sum = put(sum, true, to_float(dy[(b * s.count + k) * s.width + j]));
  }
}

}  // namespace

template <class E>
cudaError_t select_rows(const RowSelection& s, const E* x, E* y, cudaStream_t stream) {
  return launch(forward_kernel<E>, dim3(blocks_for(s.batch * s.count * s.width, kThreads)),
                dim3(kThreads), 0, stream, s, x, y);
}
template <class E>
cudaError_t select_rows_gradient(const RowSelection& s, const E* dy, E* dx, bool accumulate,
                                 cudaStream_t stream) {
  return launch(backward_kernel<E>, dim3(blocks_for(s.batch * s.width, kThreads)), dim3(kThreads),
                0, stream, s, dy, dx, accumulate);
}

#define RECKON_SELECT_ROWS_FOR(E)                                                       \
  template cudaError_t select_rows<E>(const RowSelection&, const E*, E*, cudaStream_t); \
  template cudaError_t select_rows_gradient<E>(const RowSelection&, const E*, E*, bool, \
                                               cudaStream_t)
RECKON_SELECT_ROWS_FOR(float);
RECKON_SELECT_ROWS_FOR(Bf16);
RECKON_SELECT_ROWS_FOR(Half);

}  // namespace reckon::gpu
