#include "kernels/experts.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kExpertThreads = 256, kExpertWarps = kExpertThreads / 32;

template <class E>
__global__ void dispatch_kernel(ExpertRows r, const E* x, E* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kExpertThreads + threadIdx.x;
  if (i >= r.tokens * r.top_k * r.width) return;
  const std::int64_t token = r.slot_of[i / r.width] / r.top_k;
  y[i] = x[token * r.width + i % r.width];
}

/// A thread a feature of a token. weights null: ones.
template <class E>
__global__ void sum_rows_kernel(ExpertRows r, const float* weights, const E* rows, E* sums,
                                bool accumulate) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kExpertThreads + threadIdx.x;
  if (i >= r.tokens * r.width) return;
  const std::int64_t token = i / r.width, j = i % r.width;
  float sum = 0;
  for (std::int64_t slot = token * r.top_k; slot < (token + 1) * r.top_k; ++slot) {
    const float x = to_float(rows[r.row_of[slot] * r.width + j]);
    sum += weights == nullptr ? x : weights[slot] * x;
  }
  sums[i] = put(accumulate ? sums[i] : E{}, accumulate, sum);
}

/// A warp's token; its softmax, which all lanes have.
struct TokenSoftmax {
  float largest, sum;
};
__device__ inline bool chosen(const ExpertRows& r, std::int64_t token, std::int64_t expert,
                              std::int64_t& slot) {
  for (slot = token * r.top_k; slot < (token + 1) * r.top_k; ++slot)
    if (r.expert_of[slot] == expert) return true;
  return false;
}
template <class E>
__device__ TokenSoftmax softmax_of(const ExpertRows& r, bool normalize, const E* score,
                                   std::int64_t token) {
  float largest = -INFINITY;  // that of all is always chosen
  for (std::int64_t e = threadIdx.x % 32; e < r.experts; e += 32)
    largest = fmaxf(largest, to_float(score[e]));
  largest = warp_max(largest);
  float sum = 0;
  for (std::int64_t e = threadIdx.x % 32; e < r.experts; e += 32) {
    std::int64_t slot;
    if (!normalize || chosen(r, token, e, slot)) sum += expf(to_float(score[e]) - largest);
  }
  return {largest, warp_sum(sum)};
}
__device__ inline std::int64_t my_item() {
  return std::int64_t{blockIdx.x} * kExpertWarps + threadIdx.x / 32;
}

template <class E>
__global__ void weights_kernel(ExpertRows r, bool normalize, const E* scores, float* weights) {
  const std::int64_t token = my_item();
  if (token >= r.tokens) return;
  const E* score = scores + token * r.experts;
  const TokenSoftmax soft = softmax_of(r, normalize, score, token);
  for (std::int64_t k = threadIdx.x % 32; k < r.top_k; k += 32) {
    const std::int64_t slot = token * r.top_k + k;
    weights[slot] = expf(to_float(score[r.expert_of[slot]]) - soft.largest) / soft.sum;
  }
}

template <class E>
__global__ void weights_gradient_kernel(ExpertRows r, bool normalize, const E* scores,
                                        const float* slopes, E* dscores, bool accumulate) {
  const std::int64_t token = my_item();
  if (token >= r.tokens) return;
  const E* score = scores + token * r.experts;
  const TokenSoftmax soft = softmax_of(r, normalize, score, token);
  // Of an expert: its weight, and the gradient of it.
  const auto weight_of = [&](std::int64_t e, float& slope) {
    std::int64_t slot;
    const bool is_chosen = chosen(r, token, e, slot);
    slope = is_chosen ? slopes[slot] : 0.0f;
    const float power = !normalize || is_chosen ? expf(to_float(score[e]) - soft.largest) : 0.0f;
    return power / soft.sum;
  };
  float along = 0, slope;
  for (std::int64_t e = threadIdx.x % 32; e < r.experts; e += 32) {
    const float weight = weight_of(e, slope);
    along += weight * slope;
  }
  along = warp_sum(along);
  for (std::int64_t e = threadIdx.x % 32; e < r.experts; e += 32) {
    const float weight = weight_of(e, slope);
    E& to = dscores[token * r.experts + e];
    to = put(accumulate ? to : E{}, accumulate, weight * (slope - along));
  }
}

/// A warp a row.
template <class E>
__global__ void combine_gradient_kernel(ExpertRows r, const float* weights, const E* x, const E* dy,
                                        E* dx, bool accumulate, float* slopes) {
  const std::int64_t row = my_item();
  if (row >= r.tokens * r.top_k) return;
  const std::int64_t slot = r.slot_of[row], token = slot / r.top_k;
  const float weight = weights[slot];
  float dot = 0;
  for (std::int64_t j = threadIdx.x % 32; j < r.width; j += 32) {
    const float slope = to_float(dy[token * r.width + j]);
    dot += slope * to_float(x[row * r.width + j]);
    if (dx == nullptr) continue;
    E& to = dx[row * r.width + j];
    to = put(accumulate ? to : E{}, accumulate, weight * slope);
  }
  dot = warp_sum(dot);
  if (threadIdx.x % 32 == 0) slopes[slot] = dot;
}

dim3 threads_for(std::int64_t items) { return dim3(blocks_for(items, kExpertThreads)); }
dim3 warps_for_items(std::int64_t items) { return dim3(blocks_for(items, kExpertWarps)); }

}  // namespace

template <class E>
cudaError_t dispatch_rows(const ExpertRows& r, const E* x, E* y, cudaStream_t stream) {
  return launch(dispatch_kernel<E>, threads_for(r.tokens * r.top_k * r.width), dim3(kExpertThreads),
                0, stream, r, x, y);
}
template <class E>
cudaError_t dispatch_rows_gradient(const ExpertRows& r, const E* dy, E* dx, bool accumulate,
                                   cudaStream_t stream) {
  return launch(sum_rows_kernel<E>, threads_for(r.tokens * r.width), dim3(kExpertThreads), 0,
                stream, r, nullptr, dy, dx, accumulate);
}
template <class E>
cudaError_t expert_weights(const ExpertRows& r, bool normalize, const E* scores, float* weights,
                           cudaStream_t stream) {
  return launch(weights_kernel<E>, warps_for_items(r.tokens), dim3(kExpertThreads), 0, stream, r,
                normalize, scores, weights);
}
template <class E>
cudaError_t expert_weights_gradient(const ExpertRows& r, bool normalize, const E* scores,
                                    const float* slopes, E* dscores, bool accumulate,
                                    cudaStream_t stream) {
  return launch(weights_gradient_kernel<E>, warps_for_items(r.tokens), dim3(kExpertThreads), 0,
                stream, r, normalize, scores, slopes, dscores, accumulate);
}
template <class E>
cudaError_t combine_rows(const ExpertRows& r, const float* weights, const E* x, E* y,
                         cudaStream_t stream) {
  return launch(sum_rows_kernel<E>, threads_for(r.tokens * r.width), dim3(kExpertThreads), 0,
                stream, r, weights, x, y, false);
}
template <class E>
cudaError_t combine_rows_gradient(const ExpertRows& r, const float* weights, const E* x,
                                  const E* dy, E* dx, bool accumulate, float* slopes,
                                  cudaStream_t stream) {
  return launch(combine_gradient_kernel<E>, warps_for_items(r.tokens * r.top_k),
                dim3(kExpertThreads), 0, stream, r, weights, x, dy, dx, accumulate, slopes);
}

#define RECKON_EXPERTS_FOR(E)                                                                      \
  template cudaError_t dispatch_rows<E>(const ExpertRows&, const E*, E*, cudaStream_t);            \
  template cudaError_t dispatch_rows_gradient<E>(const ExpertRows&, const E*, E*, bool,            \
                                                 cudaStream_t);                                    \
  template cudaError_t expert_weights<E>(const ExpertRows&, bool, const E*, float*, cudaStream_t); \
  template cudaError_t expert_weights_gradient<E>(const ExpertRows&, bool, const E*, const float*, \
                                                  E*, bool, cudaStream_t);                         \
  template cudaError_t combine_rows<E>(const ExpertRows&, const float*, const E*, E*,              \
                                       cudaStream_t);                                              \
  template cudaError_t combine_rows_gradient<E>(const ExpertRows&, const float*, const E*,         \
                                                const E*, E*, bool, float*, cudaStream_t)
RECKON_EXPERTS_FOR(float);
RECKON_EXPERTS_FOR(Bf16);
RECKON_EXPERTS_FOR(Half);

}  // namespace reckon::gpu
