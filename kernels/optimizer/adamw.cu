#include "kernels/optimizer/adamw.h"

#include "kernels/device.h"

namespace reckon {

using gpu::aligned16;
using gpu::blocks_for;
using gpu::launch;

namespace {

// One rounding an operation, as in the reference: the compiler would fuse plain * and +.
__device__ float product_sum(float a, float x, float b, float y) {
  return __fadd_rn(__fmul_rn(a, x), __fmul_rn(b, y));
}

__device__ void update(const AdamW& o, const detail::AdamWStep& s, float& weight, float& first,
                       float& second, float gradient) {
  const float g = __fmul_rn(o.gradient_scale, gradient);
  first = product_sum(o.beta1, first, s.one_minus_beta1, g);
  second = product_sum(o.beta2, second, s.one_minus_beta2, __fmul_rn(g, g));
  const float denominator = __fadd_rn(__fmul_rn(__fsqrt_rn(second), s.inverse_root), o.epsilon);
  weight = __fsub_rn(__fmul_rn(s.keep, weight), __fmul_rn(s.rate, __fdiv_rn(first, denominator)));
}

// Four elements a thread: 16-byte loads and stores, `quads` of them. The last n % 4 elements go to
// the first threads of the grid; where `quads` is 0 each thread has one.
__global__ void adamw_kernel(AdamW options, detail::AdamWStep step, float* weights, float* firsts,
                             float* seconds, const float* gradients, std::int64_t quads,
                             std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < quads) {
    float4 w = reinterpret_cast<float4*>(weights)[i];
    float4 m = reinterpret_cast<float4*>(firsts)[i];
    float4 v = reinterpret_cast<float4*>(seconds)[i];
    const float4 g = reinterpret_cast<const float4*>(gradients)[i];
    update(options, step, w.x, m.x, v.x, g.x);
    update(options, step, w.y, m.y, v.y, g.y);
    update(options, step, w.z, m.z, v.z, g.z);
    update(options, step, w.w, m.w, v.w, g.w);
    reinterpret_cast<float4*>(weights)[i] = w;
    reinterpret_cast<float4*>(firsts)[i] = m;
    reinterpret_cast<float4*>(seconds)[i] = v;
  }
  const std::int64_t tail = quads * 4 + i;
  if (tail < n && (quads == 0 || i < 4))
    update(options, step, weights[tail], firsts[tail], seconds[tail], gradients[tail]);
}

}  // namespace

cudaError_t adamw(const AdamW& options, std::int64_t step, float* weights, float* first_moments,
                  float* second_moments, const float* gradients, std::int64_t n,
                  cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  constexpr int kThreads = 256;
  const bool packed = aligned16(weights, first_moments, second_moments, gradients);
  const std::int64_t quads = packed ? n / 4 : 0;
  const std::int64_t threads = quads == 0 ? n : quads > 4 ? quads : 4;
  return launch(adamw_kernel, dim3(blocks_for(threads, kThreads)), dim3(kThreads), 0, stream,
                options, detail::adamw_step(options, step), weights, first_moments, second_moments,
                gradients, quads, n);
}

}  // namespace reckon
