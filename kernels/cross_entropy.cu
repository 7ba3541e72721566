#include "kernels/cross_entropy.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;
constexpr float kLowest = -3.402823466e38f;

/// Sum of e^(x - largest) over what this thread has seen.
struct Running {
  float largest = kLowest, sum = 0;
  __device__ void see(float x) {
    if (x > largest) {
      sum = sum * expf(largest - x) + 1.0f;
      largest = x;
    } else {
      sum += expf(x - largest);  // a NaN lands here and stays
    }
  }
};

/// A block a row. Rows need not begin at 16 bytes: vocabularies are odd. Packs from the first
/// aligned element on, single elements before and behind.
template <class E>
__global__ void forward_kernel(std::int64_t classes, std::int64_t stride, const E* logits,
                               const float* targets, float* log_sums, float* losses) {
  __shared__ float shared[32];
  constexpr int N = kPack<E>;
  const std::int64_t row = blockIdx.x;
  const E* x = logits + row * stride;
  const auto skew = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x) % 16 / sizeof(E));
  const std::int64_t head = skew == 0 ? 0 : (N - skew < classes ? N - skew : classes);
  const std::int64_t packs = (classes - head) / N, tail = head + packs * N;
  Running mine;
  if (threadIdx.x < head) mine.see(to_float(x[threadIdx.x]));
  for (std::int64_t p = threadIdx.x; p < packs; p += kThreads) {
    const Pack<E, N> pack = load<N>(x + head + p * N);
    for (int k = 0; k < N; ++k) mine.see(to_float(pack.at[k]));
  }
  if (tail + threadIdx.x < classes) mine.see(to_float(x[tail + threadIdx.x]));
  const float largest = block_max(mine.largest, shared);
  const float sum = block_sum(mine.sum * expf(mine.largest - largest), shared);
  if (threadIdx.x != 0) return;
  const float log_sum = largest + logf(sum);
  const auto target = static_cast<std::int64_t>(targets[row]);
  log_sums[row] = log_sum;
  losses[row] = target >= 0 && target < classes ? log_sum - to_float(x[target]) : nanf("");
}

template <class E>
__global__ void backward_kernel(std::int64_t classes, std::int64_t stride, const E* logits,
                                const float* targets, const float* log_sums, const float* slopes,
                                std::int64_t rows_of_sample, E* dx, bool accumulate) {
  constexpr int N = kPack<E>;
  const std::int64_t row = blockIdx.x, at = row * stride;
  const E* x = logits + at;
  E* to = dx + at;
  const auto target = static_cast<std::int64_t>(targets[row]);
  const float log_sum = log_sums[row];
  const float slope = slopes[row / rows_of_sample] / static_cast<float>(rows_of_sample);
  const auto gradient = [&](E logit, std::int64_t j) {
    return slope * (expf(to_float(logit) - log_sum) - (j == target ? 1.0f : 0.0f));
  };
  // Both begin at the same distance from 16 bytes: x and dx do, and rows are of one length.
  const auto skew = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x) % 16 / sizeof(E));
  const std::int64_t head = skew == 0 ? 0 : (N - skew < classes ? N - skew : classes);
  const std::int64_t packs = (classes - head) / N, tail = head + packs * N;
  const auto single = [&](std::int64_t j) {
    to[j] = put(accumulate ? to[j] : E{}, accumulate, gradient(x[j], j));
  };
  if (threadIdx.x < head) single(threadIdx.x);
  for (std::int64_t p = threadIdx.x; p < packs; p += kThreads) {
    const std::int64_t j = head + p * N;
    const Pack<E, N> pack = load<N>(x + j);
    Pack<E, N> out{};
    if (accumulate) out = load<N>(to + j);
    for (int k = 0; k < N; ++k) out.at[k] = put(out.at[k], accumulate, gradient(pack.at[k], j + k));
    store(to + j, out);
  }
  if (tail + threadIdx.x < classes) single(tail + threadIdx.x);
  for (std::int64_t j = classes + threadIdx.x; j < stride; j += kThreads) to[j] = E{};
}

__global__ void mean_kernel(std::int64_t size, const float* losses, float* means) {
  __shared__ float shared[32];
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += kThreads)
    sum += losses[std::int64_t{blockIdx.x} * size + i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) means[blockIdx.x] = sum / static_cast<float>(size);
}

}  // namespace

template <class E>
cudaError_t cross_entropy_forward(std::int64_t rows, std::int64_t classes, std::int64_t stride,
                                  const E* logits, const float* targets, float* log_sums,
                                  float* losses, cudaStream_t stream) {
  return launch(forward_kernel<E>, dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, stream,
                classes, stride, logits, targets, log_sums, losses);
}

template <class E>
cudaError_t cross_entropy_backward(std::int64_t rows, std::int64_t classes, std::int64_t stride,
                                   const E* logits, const float* targets, const float* log_sums,
                                   const float* slopes, std::int64_t rows_of_sample, E* dx,
                                   bool accumulate, cudaStream_t stream) {
  if (reinterpret_cast<std::uintptr_t>(logits) % 16 != reinterpret_cast<std::uintptr_t>(dx) % 16)
    return cudaErrorInvalidValue;
  return launch(backward_kernel<E>, dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, stream,
                classes, stride, logits, targets, log_sums, slopes, rows_of_sample, dx, accumulate);
}

cudaError_t mean_losses(std::int64_t batch, std::int64_t size, const float* losses, float* means,
                        cudaStream_t stream) {
  return launch(mean_kernel, dim3(static_cast<unsigned>(batch)), dim3(kThreads), 0, stream, size,
                losses, means);
}

#define RECKON_CROSS_ENTROPY_FOR(E)                                                       \
  template cudaError_t cross_entropy_forward<E>(std::int64_t, std::int64_t, std::int64_t, \
                                                const E*, const float*, float*, float*,   \
                                                cudaStream_t);                            \
  template cudaError_t cross_entropy_backward<E>(                                         \
      std::int64_t, std::int64_t, std::int64_t, const E*, const float*, const float*,     \
      const float*, std::int64_t, E*, bool, cudaStream_t)
RECKON_CROSS_ENTROPY_FOR(float);
RECKON_CROSS_ENTROPY_FOR(Bf16);
RECKON_CROSS_ENTROPY_FOR(Half);

}  // namespace reckon::gpu
