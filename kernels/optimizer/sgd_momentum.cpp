#include "kernels/optimizer/sgd_momentum.h"

#include <cmath>

#include "sim/base/check.h"

namespace reckon {

namespace {

/// Compiled into each of its callers, for the instructions that those have.
__attribute__((always_inline)) inline void update(const SgdMomentum& options,
                                                  std::span<float> weights,
                                                  std::span<float> velocities,
                                                  std::span<const float> gradients) {
  float* const w = weights.data();
  float* const v = velocities.data();
  const float* const g = gradients.data();
  const std::size_t count = weights.size();
  for (std::size_t i = 0; i < count; ++i) {
    const float scaled = options.gradient_scale * g[i];
    const float gradient = std::fma(options.weight_decay, w[i], scaled);
    v[i] = std::fma(options.momentum, v[i], gradient);
    w[i] = std::fma(-options.learning_rate, v[i], w[i]);
  }
}

#if defined(__x86_64__)
/// The same bits: std::fma rounds once with the instruction and without. Without, each is a call of
/// the C library.
__attribute__((target("avx2,fma"))) void update_with_fma(const SgdMomentum& options,
                                                         std::span<float> weights,
                                                         std::span<float> velocities,
                                                         std::span<const float> gradients) {
  update(options, weights, velocities, gradients);
}
#endif

}  // namespace

void sgd_momentum_reference(const SgdMomentum& options, std::span<float> weights,
                            std::span<float> velocities, std::span<const float> gradients) {
  RECKON_CHECK(weights.size() == gradients.size());
  RECKON_CHECK(weights.size() == velocities.size());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return update_with_fma(options, weights, velocities, gradients);
#endif
  update(options, weights, velocities, gradients);
}

}  // namespace reckon
