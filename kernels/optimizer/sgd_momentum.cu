#include "kernels/optimizer/sgd_momentum.h"

#include "kernels/device.h"

namespace reckon {

using gpu::aligned16;
using gpu::blocks_for;
using gpu::launch;

namespace {

__device__ void update(const SgdMomentum& options, float& weight, float& velocity, float gradient) {
  const float scaled = __fmul_rn(options.gradient_scale, gradient);
  velocity = fmaf(options.momentum, velocity, fmaf(options.weight_decay, weight, scaled));
  weight = fmaf(-options.learning_rate, velocity, weight);
}

// Four elements a thread: 16-byte loads and stores, `quads` of them. The last n % 4 elements go to
// the first threads of the grid; where `quads` is 0 each thread has one.
__global__ void sgd_momentum_kernel(SgdMomentum options, float* weights, float* velocities,
                                    const float* gradients, std::int64_t quads, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < quads) {
    float4 w = reinterpret_cast<float4*>(weights)[i];
    float4 v = reinterpret_cast<float4*>(velocities)[i];
    const float4 g = reinterpret_cast<const float4*>(gradients)[i];
    update(options, w.x, v.x, g.x);
    update(options, w.y, v.y, g.y);
    update(options, w.z, v.z, g.z);
    update(options, w.w, v.w, g.w);
    reinterpret_cast<float4*>(weights)[i] = w;
    reinterpret_cast<float4*>(velocities)[i] = v;
  }
  const std::int64_t tail = quads * 4 + i;
  if (tail < n && (quads == 0 || i < 4))
    update(options, weights[tail], velocities[tail], gradients[tail]);
}

}  // namespace

cudaError_t sgd_momentum(const SgdMomentum& options, float* weights, float* velocities,
                         const float* gradients, std::int64_t n, cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  constexpr int kThreads = 256;
  const std::int64_t quads = aligned16(weights, velocities, gradients) ? n / 4 : 0;
  const std::int64_t threads = quads == 0 ? n : quads > 4 ? quads : 4;
  return launch(sgd_momentum_kernel, dim3(blocks_for(threads, kThreads)), dim3(kThreads), 0, stream,
                options, weights, velocities, gradients, quads, n);
}

}  // namespace reckon
