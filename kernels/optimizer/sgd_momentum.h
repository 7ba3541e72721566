#pragma once
#include <cstdint>
#include <span>

// SGD with momentum, the optimizer step of every image model of the catalog.
namespace reckon {

struct SgdMomentum {
  float learning_rate = 0.1f;  // times the velocity
  float momentum = 0.9f;       // share of the velocity that is kept each step
  float weight_decay = 0;      // L2, added to the gradient
  float gradient_scale = 1;    // the gradient is multiplied by it first: mean of ranks, clipping
};

/// velocity = momentum * velocity + (gradient_scale * gradient + weight_decay * weight); weight -=
/// learning_rate * velocity. The form of [Sutskever et al. 2013, Eq. 1-2] as PyTorch and TensorFlow
/// write it (learning rate outside the velocity). All three spans have the same length. One
/// rounding an operation: std::fma is used where the kernel uses it, so both give the same bits.
void sgd_momentum_reference(const SgdMomentum& options, std::span<float> weights,
                            std::span<float> velocities, std::span<const float> gradients);

#ifdef RECKON_WITH_CUDA_RUNTIME
}  // namespace reckon
#include <cuda_runtime.h>
namespace reckon {
/// The same on the device; weights, velocities, gradients: (n) each; 16 bytes at a time where all
/// begin there. Returns the launch status, so that the caller's line is reported. Memory bound: 5 x
/// 4 bytes an element.
[[nodiscard]] cudaError_t sgd_momentum(const SgdMomentum& options, float* weights,
                                       float* velocities, const float* gradients, std::int64_t n,
                                       cudaStream_t stream);
#endif

}  // namespace reckon
