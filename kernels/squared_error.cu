#include "kernels/squared_error.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

template <class E>
__global__ void forward_kernel(std::int64_t size, const E* x, const float* targets, float* losses) {
  __shared__ float shared[32];
  const std::int64_t at = std::int64_t{blockIdx.x} * size;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += kThreads) {
    const float error = to_float(x[at + i]) - targets[at + i];
    sum += error * error;
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) losses[blockIdx.x] = sum / static_cast<float>(size);
}

template <class E>
__global__ void backward_kernel(std::int64_t count, std::int64_t size, const E* x,
                                const float* targets, const float* slopes, E* dx, bool accumulate) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float slope = slopes[i / size] / static_cast<float>(size);
  dx[i] = put(dx[i], accumulate, slope * 2 * (to_float(x[i]) - targets[i]));
}

}  // namespace

template <class E>
cudaError_t squared_error_forward(std::int64_t batch, std::int64_t size, const E* x,
                                  const float* targets, float* losses, cudaStream_t stream) {
  return launch(forward_kernel<E>, dim3(static_cast<unsigned>(batch)), dim3(kThreads), 0, stream,
                size, x, targets, losses);
}
template <class E>
cudaError_t squared_error_backward(std::int64_t batch, std::int64_t size, const E* x,
                                   const float* targets, const float* slopes, E* dx,
                                   bool accumulate, cudaStream_t stream) {
  return launch(backward_kernel<E>, dim3(blocks_for(batch * size, kThreads)), dim3(kThreads), 0,
                stream, batch * size, size, x, targets, slopes, dx, accumulate);
}

#define RECKON_SQUARED_ERROR_FOR(E)                                                   \
  template cudaError_t squared_error_forward<E>(std::int64_t, std::int64_t, const E*, \
                                                const float*, float*, cudaStream_t);  \
  template cudaError_t squared_error_backward<E>(                                     \
      std::int64_t, std::int64_t, const E*, const float*, const float*, E*, bool, cudaStream_t)
RECKON_SQUARED_ERROR_FOR(float);
RECKON_SQUARED_ERROR_FOR(Bf16);
RECKON_SQUARED_ERROR_FOR(Half);

}  // namespace reckon::gpu
