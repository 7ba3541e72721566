#pragma once
#include <cstdint>
#include <span>

// AdamW, the optimizer step of every sequence model of the catalog.
namespace reckon {

struct AdamW {
  float learning_rate = 1e-3f;  // times the update
  float beta1 = 0.9f;           // share of the first moment that is kept each step
  float beta2 = 0.999f;         // of the second
  float epsilon = 1e-8f;        // added to the root of the second moment
  float weight_decay = 0;       // decoupled: times the learning rate, taken from the weight itself
  float gradient_scale = 1;     // the gradient is multiplied by it first: mean of ranks, clipping
};

/// Algorithm 2 of [Loshchilov & Hutter 2019, "Decoupled weight decay regularization",
/// arXiv:1711.05101] in the form of torch.optim.AdamW (the decay is multiplied by the learning
/// rate; its schedule multiplier is part of that):
///   g = gradient_scale * gradient;  weight -= learning_rate * weight_decay * weight
///   m = beta1 m + (1 - beta1) g;    v = beta2 v + (1 - beta2) g^2
///   weight -= learning_rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
/// with t = step + 1: `step` counts updates from 0. All four spans have the same length. The
/// operations and their roundings are those of the kernel, so both give the same bits.
void adamw_reference(const AdamW& options, std::int64_t step, std::span<float> weights,
                     std::span<float> first_moments, std::span<float> second_moments,
                     std::span<const float> gradients);

namespace detail {
/// What is the same for all elements of a step, computed once in double.
struct AdamWStep {
  float keep;          // 1 - learning_rate * weight_decay
  float rate;          // learning_rate / (1 - beta1^t)
  float inverse_root;  // 1 / sqrt(1 - beta2^t)
  float one_minus_beta1, one_minus_beta2;
};
AdamWStep adamw_step(const AdamW& options, std::int64_t step);
}  // namespace detail

#ifdef RECKON_WITH_CUDA_RUNTIME
}  // namespace reckon
#include <cuda_runtime.h>
namespace reckon {
/// The same on the device; weights, moments, gradients: (n) each; 16 bytes at a time where all
/// begin there. Returns the launch status, so that the caller's line is reported. Memory bound: 7 x
/// 4 bytes an element.
[[nodiscard]] cudaError_t adamw(const AdamW& options, std::int64_t step, float* weights,
                                float* first_moments, float* second_moments, const float* gradients,
                                std::int64_t n, cudaStream_t stream);
#endif

}  // namespace reckon
