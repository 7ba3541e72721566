#include "kernels/sgd_momentum.h"

#include <cmath>

#include "sim/base/check.h"

namespace reckon {

void sgd_momentum_reference(const SgdMomentum& options, std::span<float> weights,
                            std::span<float> velocities, std::span<const float> gradients) {
  RECKON_CHECK(weights.size() == gradients.size());
  RECKON_CHECK(weights.size() == velocities.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float scaled = options.gradient_scale * gradients[i];
    const float gradient = std::fma(options.weight_decay, weights[i], scaled);
    velocities[i] = std::fma(options.momentum, velocities[i], gradient);
    weights[i] = std::fma(-options.learning_rate, velocities[i], weights[i]);
  }
}

}  // namespace reckon
