#include "kernels/copy_columns.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

template <class E>
__global__ void copy_kernel(std::int64_t rows, std::int64_t count, Columns<const E> from,
                            Columns<E> to, bool accumulate) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= rows * count) return;
  const std::int64_t row = i / count, column = i % count;
  E& there = to.data[row * to.stride + to.first + column];
  const E here = from.data[row * from.stride + from.first + column];
  there = accumulate ? put(there, true, to_float(here)) : here;
}

}  // namespace

template <class E>
cudaError_t copy_columns(std::int64_t rows, std::int64_t count, Columns<const E> from,
                         Columns<E> to, bool accumulate, cudaStream_t stream) {
  return launch(copy_kernel<E>, dim3(blocks_for(rows * count, kThreads)), dim3(kThreads), 0, stream,
                rows, count, from, to, accumulate);
}

#define RECKON_COPY_COLUMNS_FOR(E)                                                               \
  template cudaError_t copy_columns<E>(std::int64_t, std::int64_t, Columns<const E>, Columns<E>, \
                                       bool, cudaStream_t)
RECKON_COPY_COLUMNS_FOR(float);
RECKON_COPY_COLUMNS_FOR(Bf16);
RECKON_COPY_COLUMNS_FOR(Half);

}  // namespace reckon::gpu
