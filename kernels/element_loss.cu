#include "kernels/element_loss.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

template <ElementLoss kind>
__device__ inline float loss_of(float x, float target) {
  if constexpr (kind == ElementLoss::squared)
    return (x - target) * (x - target);
  else
    return fmaxf(x, 0.0f) - x * target + log1pf(expf(-fabsf(x)));
}
template <ElementLoss kind>
__device__ inline float slope_of(float x, float target) {
  if constexpr (kind == ElementLoss::squared)
    return 2 * (x - target);
  else
    return 1.0f / (1.0f + expf(-x)) - target;
}

template <ElementLoss kind, class E>
__global__ void forward_kernel(std::int64_t size, const E* x, const float* targets, float* losses) {
  __shared__ float shared[32];
  const std::int64_t at = std::int64_t{blockIdx.x} * size;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < size; i += kThreads)
    sum += loss_of<kind>(to_float(x[at + i]), targets[at + i]);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) losses[blockIdx.x] = sum / static_cast<float>(size);
}

template <ElementLoss kind, class E>
__global__ void backward_kernel(std::int64_t count, std::int64_t size, const E* x,
                                const float* targets, const float* slopes, E* dx, bool accumulate) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float slope = slopes[i / size] / static_cast<float>(size);
  dx[i] = put(dx[i], accumulate, slope * slope_of<kind>(to_float(x[i]), targets[i]));
}

}  // namespace

template <class E>
cudaError_t element_loss_forward(ElementLoss kind, std::int64_t batch, std::int64_t size,
                                 const E* x, const float* targets, float* losses,
                                 cudaStream_t stream) {
  return launch(kind == ElementLoss::squared ? forward_kernel<ElementLoss::squared, E>
                                             : forward_kernel<ElementLoss::logistic, E>,
                dim3(static_cast<unsigned>(batch)), dim3(kThreads), 0, stream, size, x, targets,
                losses);
}
template <class E>
cudaError_t element_loss_backward(ElementLoss kind, std::int64_t batch, std::int64_t size,
                                  const E* x, const float* targets, const float* slopes, E* dx,
                                  bool accumulate, cudaStream_t stream) {
  return launch(kind == ElementLoss::squared ? backward_kernel<ElementLoss::squared, E>
                                             : backward_kernel<ElementLoss::logistic, E>,
                dim3(blocks_for(batch * size, kThreads)), dim3(kThreads), 0, stream, batch * size,
                size, x, targets, slopes, dx, accumulate);
}

#define RECKON_ELEMENT_LOSS_FOR(E)                                                                 \
  template cudaError_t element_loss_forward<E>(ElementLoss, std::int64_t, std::int64_t, const E*,  \
                                               const float*, float*, cudaStream_t);                \
  template cudaError_t element_loss_backward<E>(ElementLoss, std::int64_t, std::int64_t, const E*, \
                                                const float*, const float*, E*, bool,              \
                                                cudaStream_t)
RECKON_ELEMENT_LOSS_FOR(float);
RECKON_ELEMENT_LOSS_FOR(Bf16);
RECKON_ELEMENT_LOSS_FOR(Half);

}  // namespace reckon::gpu
