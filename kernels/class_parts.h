#pragma once
#include <cuda_runtime.h>

#include <cstdint>

// A softmax cross entropy whose classes several ranks share out [Shoeybi et al. 2019,
// arXiv:1909.08053, Sec. 3]: each makes log_sums and losses of its own classes
// (cross_entropy_forward()), tells the others two numbers a row, and puts all together. Reference:
// softmax_cross_entropy of kernels/reference/layers.h over all classes.
namespace reckon::gpu {

/// found[row] = log_sums[row]; found[rows + row] = the target's logit, or 0 where the target is no
/// class of this rank: targets count from its first class, of `classes`.
[[nodiscard]] cudaError_t class_parts(std::int64_t rows, std::int64_t classes, const float* targets,
                                      const float* log_sums, const float* losses, float* found,
                                      cudaStream_t stream);
/// `all`: what each of `ranks` has found, one after the other: log_sums and losses over all
/// classes, in the order of the ranks. |error| <= 2^-22 (|largest logit| + log classes + ranks).
[[nodiscard]] cudaError_t join_class_parts(std::int64_t rows, std::int64_t ranks, const float* all,
                                           float* log_sums, float* losses, cudaStream_t stream);

}  // namespace reckon::gpu
