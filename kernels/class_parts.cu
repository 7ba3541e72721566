#include "kernels/class_parts.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void parts_kernel(std::int64_t rows, std::int64_t classes, const float* targets,
                             const float* log_sums, const float* losses, float* found) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float target = targets[row];
  const bool own = target >= 0.0f && target < static_cast<float>(classes);
  found[row] = log_sums[row];
  found[rows + row] = own ? log_sums[row] - losses[row] : 0.0f;
}

__global__ void join_kernel(std::int64_t rows, std::int64_t ranks, const float* all,
                            float* log_sums, float* losses) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float largest = all[row];
  for (std::int64_t k = 1; k < ranks; ++k) {
    const float part = all[2 * k * rows + row];
    if (part > largest) largest = part;
  }
  float sum = 0.0f, of_target = 0.0f;
  for (std::int64_t k = 0; k < ranks; ++k) {
    sum += expf(all[2 * k * rows + row] - largest);
    of_target += all[(2 * k + 1) * rows + row];
  }
  const float log_sum = largest + logf(sum);
  log_sums[row] = log_sum;
  losses[row] = log_sum - of_target;
}

}  // namespace

cudaError_t class_parts(std::int64_t rows, std::int64_t classes, const float* targets,
                        const float* log_sums, const float* losses, float* found,
                        cudaStream_t stream) {
  return launch(parts_kernel, dim3(blocks_for(rows, kThreads)), dim3(kThreads), 0, stream, rows,
                classes, targets, log_sums, losses, found);
}

cudaError_t join_class_parts(std::int64_t rows, std::int64_t ranks, const float* all,
                             float* log_sums, float* losses, cudaStream_t stream) {
  return launch(join_kernel, dim3(blocks_for(rows, kThreads)), dim3(kThreads), 0, stream, rows,
                ranks, all, log_sums, losses);
}

}  // namespace reckon::gpu
