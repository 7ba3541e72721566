#include "kernels/adamw.h"

#include <cmath>

#include "sim/base/check.h"

namespace reckon {

detail::AdamWStep detail::adamw_step(const AdamW& o, std::int64_t step) {
  const double t = static_cast<double>(step) + 1;
  const double correction1 = 1 - std::pow(double{o.beta1}, t);
  const double correction2 = 1 - std::pow(double{o.beta2}, t);
  return {.keep = static_cast<float>(1 - double{o.learning_rate} * double{o.weight_decay}),
          .rate = static_cast<float>(double{o.learning_rate} / correction1),
          .inverse_root = static_cast<float>(1 / std::sqrt(correction2)),
          .one_minus_beta1 = 1 - o.beta1,
          .one_minus_beta2 = 1 - o.beta2};
}

void adamw_reference(const AdamW& options, std::int64_t step, std::span<float> weights,
                     std::span<float> first_moments, std::span<float> second_moments,
                     std::span<const float> gradients) {
  RECKON_CHECK(weights.size() == gradients.size());
  RECKON_CHECK(weights.size() == first_moments.size());
  RECKON_CHECK(weights.size() == second_moments.size());
  RECKON_CHECK(step >= 0);
  const detail::AdamWStep s = detail::adamw_step(options, step);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float g = options.gradient_scale * gradients[i];
    const float m = options.beta1 * first_moments[i] + s.one_minus_beta1 * g;
    const float v = options.beta2 * second_moments[i] + s.one_minus_beta2 * (g * g);
    const float denominator = std::sqrt(v) * s.inverse_root + options.epsilon;
    first_moments[i] = m;
    second_moments[i] = v;
    weights[i] = s.keep * weights[i] - s.rate * (m / denominator);
  }
}

}  // namespace reckon
