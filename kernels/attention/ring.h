#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/half.h"

// Attention by parts of the columns, as context ranks see them one after the other [Liu et al.
// 2023, "Ring attention", arXiv:2310.01889, Sec. 3]: what attention.h makes of a part is merged by
// its log_sums. Sums are floats.
namespace reckon::gpu {

/// sum (rows, heads * width) and log_sums (heads, rows) become those of the columns so far and of a
/// part: (y0 e^l0 + y1 e^l1) / (e^l0 + e^l1), log(e^l0 + e^l1), taken from the larger. A row that
/// sees nothing of a part has the log_sum -infinity. `first`: there were no columns so far.
template <class E>
[[nodiscard]] cudaError_t merge_attention(std::int64_t rows, std::int64_t heads, std::int64_t width,
                                          const E* part, const float* part_log_sums, float* sum,
                                          float* log_sums, bool first, cudaStream_t stream);

/// to (rows, width) = the first `width` elements of each row of `from`, `stride` apart.
template <class E>
[[nodiscard]] cudaError_t take_columns(std::int64_t rows, std::int64_t width, const E* from,
                                       std::int64_t stride, E* to, cudaStream_t stream);
/// The other way round: set, or added to.
template <class E>
[[nodiscard]] cudaError_t put_columns(std::int64_t rows, std::int64_t width, const float* from,
                                      E* to, std::int64_t stride, bool accumulate,
                                      cudaStream_t stream);
/// to += from
template <class E>
[[nodiscard]] cudaError_t add_widened(std::int64_t count, const E* from, float* to,
                                      cudaStream_t stream);

}  // namespace reckon::gpu
