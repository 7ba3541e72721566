#include "kernels/optimizer/gradient_norm.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

/// Sum over the block, in thread 0: a tree, the same every time.
__device__ double block_total(double x) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = x;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  return shared[0];
}

__global__ void partial_kernel(const float* values, std::int64_t n, double* partial) {
  double sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += step)
    sum += double{values[i]} * double{values[i]};
  sum = block_total(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void total_kernel(const double* partial, int count, double* to) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += partial[i];
  sum = block_total(sum);
  if (threadIdx.x == 0) *to = sum;
}

}  // namespace

cudaError_t squared_norm(const float* values, std::int64_t n, double* scratch, double* sum,
                         cudaStream_t stream) {
  const std::int64_t wanted = (n + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(wanted < 1              ? 1
                                      : wanted < kNormScratch ? wanted
                                                              : kNormScratch);
  const cudaError_t status = launch(partial_kernel, dim3(static_cast<unsigned>(blocks)),
                                    dim3(kThreads), 0, stream, values, n, scratch);
  if (status != cudaSuccess) return status;
  return launch(total_kernel, dim3(1), dim3(kThreads), 0, stream,
                static_cast<const double*>(scratch), blocks, sum);
}

}  // namespace reckon::gpu
