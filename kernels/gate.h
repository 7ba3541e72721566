#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"

// Products of a tensor (batch, rows, channels) and a smaller one: squeeze-and-excitation gates,
// which have one number a channel of a sample [Hu et al. 2018, "Squeeze-and-excitation networks",
// Sec. 3], and gates of one number a row. One rounding to E each; the references are loops of one
// line, in the tests.
namespace reckon::gpu {

struct GateShape {
  std::int64_t batch = 1, rows = 1, channels = 1;
  bool by_row = false;  // gate: (batch, rows); else (batch, channels)
};

/// out = x * gate. The gradient of x: the same of dy.
template <class E>
[[nodiscard]] cudaError_t gate(const GateShape& s, const E* x, const E* gate, E* out,
                               bool accumulate, cudaStream_t stream);
/// dgate = sum over what shares a number of it of dy * x, in one order, in float.
template <class E>
[[nodiscard]] cudaError_t gate_gradient(const GateShape& s, const E* x, const E* dy, E* dgate,
                                        bool accumulate, cudaStream_t stream);

}  // namespace reckon::gpu
