#include "sim/base/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace reckon {

RandomStream::RandomStream(std::uint64_t seed, std::uint32_t replication, Purpose purpose,
                           std::uint32_t entity)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, replication, purpose.hash, entity} {}

void RandomStream::refill() {
  const r123::Philox4x32::ctr_type counter{{counter_[0], counter_[1], counter_[2], counter_[3]}};
  const r123::Philox4x32::key_type key{{key_[0], key_[1]}};
  const auto block = r123::Philox4x32{}(counter, key);
  for (std::size_t i = 0; i < block_.size(); ++i) block_[i] = block[i];
  ++counter_[0];
  used_ = 0;
}

RandomStream::result_type RandomStream::operator()() {
  if (used_ == 4) refill();
  return block_[static_cast<std::size_t>(used_++)];
}

double RandomStream::uniform() {
  const std::uint64_t high = (*this)();
  const std::uint64_t low = (*this)();
  const std::uint64_t bits = (high << 32 | low) >> 11;  // 53 bits
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;   // centred, so neither 0 nor 1
}

double RandomStream::exponential() { return -std::log(uniform()); }

namespace {

// Coefficients of P. J. Acklam, "An algorithm for computing the inverse normal cumulative
// distribution function" (2003): relative error 1.15e-9 before refinement.
constexpr double kA[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                         1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                         6.680131188771972e+01, -1.328068155288572e+01};
constexpr double kC[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                         -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                         3.754408661907416e+00};

double tail(double q) {
  return (((((kC[0] * q + kC[1]) * q + kC[2]) * q + kC[3]) * q + kC[4]) * q + kC[5]) /
         ((((kD[0] * q + kD[1]) * q + kD[2]) * q + kD[3]) * q + 1);
}

double acklam(double p) {
  constexpr double kLow = 0.02425;
  if (p < kLow) return tail(std::sqrt(-2 * std::log(p)));
  if (p > 1 - kLow) return -tail(std::sqrt(-2 * std::log1p(-p)));
  const double q = p - 0.5;
  const double r = q * q;
  return (((((kA[0] * r + kA[1]) * r + kA[2]) * r + kA[3]) * r + kA[4]) * r + kA[5]) * q /
         (((((kB[0] * r + kB[1]) * r + kB[2]) * r + kB[3]) * r + kB[4]) * r + 1);
}

}  // namespace

double RandomStream::normal() { return acklam(uniform()); }

double normal_quantile(double p) {
  if (p > 0.5)
    return -normal_quantile(1 - p);  // refine in the lower tail, where erfc keeps its digits
  const double x = acklam(p);
  const double error = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
  const double u = error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
  return x - u / (1 + x * u / 2);  // Halley's step
}

}  // namespace reckon
