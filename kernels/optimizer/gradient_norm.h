#pragma once
#include <cuda_runtime.h>

#include <cstdint>

// What a step needs to know of all gradients: their norm, for clipping, and whether all are
// numbers.
namespace reckon::gpu {

/// Doubles of scratch memory.
inline constexpr int kNormScratch = 1024;
/// *sum = sum of squares of n values in double, in an order that depends on n
/// alone; NaN or infinite where a value is. Reference: squared_norm() of
/// kernels/optimizer/optimizer.h, to n 2^-53 relative.
[[nodiscard]] cudaError_t squared_norm(const float* values, std::int64_t n, double* scratch,
                                       double* sum, cudaStream_t stream);

}  // namespace reckon::gpu
