#include "kernels/optimizer/adamw.h"

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

namespace {

/// Compiled into each of its callers, for the instructions that those have.
__attribute__((always_inline)) inline void update(AdamW options, detail::AdamWStep s,
                                                  std::size_t count, float* __restrict weights,
                                                  float* __restrict first_moments,
                                                  float* __restrict second_moments,
                                                  const float* __restrict gradients) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = options.gradient_scale * gradients[i];
    const float m = options.beta1 * first_moments[i] + s.one_minus_beta1 * g;
    const float v = options.beta2 * second_moments[i] + s.one_minus_beta2 * (g * g);
    const float denominator = std::sqrt(v) * s.inverse_root + options.epsilon;
    first_moments[i] = m;
    second_moments[i] = v;
    weights[i] = s.keep * weights[i] - s.rate * (m / denominator);
  }
}

#if defined(__x86_64__)
/// The same bits, eight at a time: nothing is contracted.
__attribute__((target("avx2"))) void update_with_avx2(const AdamW& options,
                                                      const detail::AdamWStep& s, std::size_t count,
                                                      float* weights, float* first_moments,
                                                      float* second_moments,
                                                      const float* gradients) {
  update(options, s, count, weights, first_moments, second_moments, gradients);
}
#endif

}  // namespace

void adamw_reference(const AdamW& options, std::int64_t step, std::span<float> weights,
                     std::span<float> first_moments, std::span<float> second_moments,
                     std::span<const float> gradients) {
  RECKON_CHECK(weights.size() == gradients.size());
  RECKON_CHECK(weights.size() == first_moments.size());
  RECKON_CHECK(weights.size() == second_moments.size());
  RECKON_CHECK(step >= 0);
  const detail::AdamWStep s = detail::adamw_step(options, step);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    return update_with_avx2(options, s, weights.size(), weights.data(), first_moments.data(),
                            second_moments.data(), gradients.data());
#endif
  update(options, s, weights.size(), weights.data(), first_moments.data(), second_moments.data(),
         gradients.data());
}

}  // namespace reckon
