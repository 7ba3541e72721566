#include "kernels/attention/ring.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kRingThreads = 256;

__device__ inline std::int64_t ring_item() {
  return std::int64_t{blockIdx.x} * kRingThreads + threadIdx.x;
}

/// Of two parts' log_sums: theirs together, and the share of the second.
struct JoinedParts {
  float log_sum, share;
};
__device__ inline JoinedParts join(float before, float part, bool first) {
  if (first || before == -INFINITY) return {part, 1.0f};
  if (part == -INFINITY) return {before, 0.0f};
  const float largest = fmaxf(before, part);
  const float a = expf(before - largest), b = expf(part - largest);
  return {largest + logf(a + b), b / (a + b)};
}

template <class E>
__global__ void merge_values_kernel(std::int64_t rows, std::int64_t heads, std::int64_t width,
                                    const E* part, const float* part_log_sums, float* sum,
                                    const float* log_sums, bool first) {
  const std::int64_t i = ring_item();
  if (i >= rows * heads * width) return;
  const std::int64_t row = i / width / heads, head = i / width % heads, at = head * rows + row;
  const JoinedParts joined = join(first ? 0.0f : log_sums[at], part_log_sums[at], first);
  const float y = to_float(part[i]);
  // Exact where one of both is all.
  if (joined.share == 1)
    sum[i] = y;
  else if (joined.share != 0)
    sum[i] = (1 - joined.share) * sum[i] + joined.share * y;
}
__global__ void merge_log_sums_kernel(std::int64_t count, const float* part_log_sums,
                                      float* log_sums, bool first) {
  const std::int64_t i = ring_item();
  if (i < count) log_sums[i] = join(first ? 0.0f : log_sums[i], part_log_sums[i], first).log_sum;
}

template <class E>
__global__ void take_columns_kernel(std::int64_t rows, std::int64_t width, const E* from,
                                    std::int64_t stride, E* to) {
  const std::int64_t i = ring_item();
  if (i < rows * width) to[i] = from[i / width * stride + i % width];
}
template <class E>
__global__ void put_columns_kernel(std::int64_t rows, std::int64_t width, const float* from, E* to,
                                   std::int64_t stride, bool accumulate) {
  const std::int64_t i = ring_item();
  if (i >= rows * width) return;
  E& x = to[i / width * stride + i % width];
  x = put(accumulate ? x : E{}, accumulate, from[i]);
}
template <class E>
__global__ void add_widened_kernel(std::int64_t count, const E* from, float* to) {
  const std::int64_t i = ring_item();
  if (i < count) to[i] += to_float(from[i]);
}

dim3 ring_blocks(std::int64_t items) { return dim3(blocks_for(items, kRingThreads)); }

}  // namespace

template <class E>
cudaError_t merge_attention(std::int64_t rows, std::int64_t heads, std::int64_t width,
                            const E* part, const float* part_log_sums, float* sum, float* log_sums,
                            bool first, cudaStream_t stream) {
  const cudaError_t status =
      launch(merge_values_kernel<E>, ring_blocks(rows * heads * width), dim3(kRingThreads), 0,
             stream, rows, heads, width, part, part_log_sums, sum, log_sums, first);
  if (status != cudaSuccess) return status;
  return launch(merge_log_sums_kernel, ring_blocks(rows * heads), dim3(kRingThreads), 0, stream,
                rows * heads, part_log_sums, log_sums, first);
}
template <class E>
cudaError_t take_columns(std::int64_t rows, std::int64_t width, const E* from, std::int64_t stride,
                         E* to, cudaStream_t stream) {
  return launch(take_columns_kernel<E>, ring_blocks(rows * width), dim3(kRingThreads), 0, stream,
                rows, width, from, stride, to);
}
template <class E>
cudaError_t put_columns(std::int64_t rows, std::int64_t width, const float* from, E* to,
                        std::int64_t stride, bool accumulate, cudaStream_t stream) {
  return launch(put_columns_kernel<E>, ring_blocks(rows * width), dim3(kRingThreads), 0, stream,
                rows, width, from, to, stride, accumulate);
}
template <class E>
cudaError_t add_widened(std::int64_t count, const E* from, float* to, cudaStream_t stream) {
  return launch(add_widened_kernel<E>, ring_blocks(count), dim3(kRingThreads), 0, stream, count,
                from, to);
}

#define RECKON_RING_FOR(E)                                                                        \
  template cudaError_t merge_attention<E>(std::int64_t, std::int64_t, std::int64_t, const E*,     \
                                          const float*, float*, float*, bool, cudaStream_t);      \
  template cudaError_t take_columns<E>(std::int64_t, std::int64_t, const E*, std::int64_t, E*,    \
                                       cudaStream_t);                                             \
  template cudaError_t put_columns<E>(std::int64_t, std::int64_t, const float*, E*, std::int64_t, \
                                      bool, cudaStream_t);                                        \
  template cudaError_t add_widened<E>(std::int64_t, const E*, float*, cudaStream_t)
RECKON_RING_FOR(float);
RECKON_RING_FOR(Bf16);
RECKON_RING_FOR(Half);

}  // namespace reckon::gpu
