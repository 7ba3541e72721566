#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/bf16.h"
#include "kernels/dropout_stream.h"

// softmax(q k^T / sqrt(w)) v by tiles with an online softmax: scores are never stored, the backward
// pass makes them again [Dao 2022, arXiv:2205.14135; Dao 2023, arXiv:2307.08691]. dq and dk, dv are
// made by two kernels, each sum in one order, so that gradients repeat bit for bit. References:
// attention of kernels/reference/layers.h, attention_backward of kernels/reference/backward.h.
namespace reckon::gpu {

struct AttentionShape {
  std::int64_t batch = 1, tokens = 1, seen = 1;  // of q; of k and v
  std::int64_t heads = 1, kv_heads = 1, head_width = 1;
  std::int64_t q_stride = 1, kv_stride = 1;  // elements from one token's row to the next
  bool causal = true;
  std::int64_t window = 0;  // causal: a token sees so many, itself the last; 0: all
  std::int64_t ahead = 0;   // causal: the first row's place less that of the first column
};
/// threshold 0: none. Element (head * tokens + row) * seen + column of sample first_sample + b,
/// heads counted from first_head, rows and columns from those named; `all`: tokens of a sequence of
/// which these are some, 0: the shape's.
struct AttentionDropout {
  DropoutStream mask;
  std::int64_t first_sample = 0;
  std::int64_t first_head = 0;
  std::int64_t first_row = 0, first_column = 0;
  std::int64_t all = 0;
};

/// q (batch, tokens, q_stride), k, v (batch, seen, kv_stride): pointers to the first head; y
/// (batch, tokens, heads * head_width). log_sums (batch, heads, tokens), kept for the backward
/// pass; of a row that sees no column -infinity, and y zero. Bf16 with head_width 32, 64 or 128 and
/// 16-byte aligned rows runs on tensor cores, with scores, sums and outputs in float and
/// probabilities rounded to bf16: |error| <= 4 u max|v| with u = 2^-8. Everything else (and float)
/// goes key by key, for head_width up to 256.
template <class E>
[[nodiscard]] cudaError_t attention_forward(const AttentionShape& s, const AttentionDropout& drop,
                                            const E* q, const E* k, const E* v, E* y,
                                            float* log_sums, cudaStream_t stream);

/// Set, or added to, with the strides of q, k and v; dk and dv are of the same input in a fused
/// layout, so they share a flag. null: not wanted.
template <class E>
struct AttentionGradients {
  E *dq = nullptr, *dk = nullptr, *dv = nullptr;
  bool accumulate_q = false, accumulate_k = false, accumulate_v = false;
};
/// dots: (batch, heads, tokens) floats of scratch memory.
template <class E>
[[nodiscard]] cudaError_t attention_backward(const AttentionShape& s, const AttentionDropout& drop,
                                             const E* q, const E* k, const E* v, const E* y,
                                             const E* dy, const float* log_sums, float* dots,
                                             const AttentionGradients<E>& gradients,
                                             cudaStream_t stream);

}  // namespace reckon::gpu
