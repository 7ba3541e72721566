#include "sim/measurement/calibration/waiting_times.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/minima.hpp>
#include <cmath>
#include <functional>
#include <numbers>

#include "sim/base/check.h"
#include "sim/measurement/log_spread.h"

namespace reckon {
namespace {

constexpr double kLeastSeconds = 1e-3;  // waits are recorded in whole milliseconds or worse

double log_density(const FamilyFit& f, double t) {
  const double x = t / f.scale;
  if (f.family == "exponential") return -x - std::log(f.scale);
  if (f.family == "weibull")
    return std::log(f.shape / f.scale) + (f.shape - 1) * std::log(x) - std::pow(x, f.shape);
  if (f.family == "lognormal") {
    const double z = std::log(x) / f.shape;
    return -std::log(t * f.shape) - 0.5 * std::log(2 * std::numbers::pi) - z * z / 2;
  }
  return (f.shape - 1) * std::log(x) - x - std::log(f.scale) - std::lgamma(f.shape);
}

double log_survival(const FamilyFit& f, double t) {
  const double x = t / f.scale;
  if (f.family == "exponential") return -x;
  if (f.family == "weibull") return -std::pow(x, f.shape);
  constexpr double kLeast = 1e-300;  // probability whose logarithm is finite
  if (f.family == "lognormal")
    return std::log(std::max(kLeast, 0.5 * std::erfc(std::log(x) / f.shape / std::numbers::sqrt2)));
  return std::log(std::max(kLeast, boost::math::gamma_q(f.shape, x)));
}

double log_likelihood(const FamilyFit& f, std::span<const WaitingSample> samples) {
  double sum = 0;
  for (const WaitingSample& s : samples) {
    const double t = std::max(kLeastSeconds, s.seconds.count());
    sum += s.censored ? log_survival(f, t) : log_density(f, t);
  }
  return sum;
}

/// The minimum of a function of one number with one valley.
double valley(const std::function<double(double)>& f, double low, double high) {
  constexpr int kBits = 24;
  std::uintmax_t rounds = 60;
  return boost::math::tools::brent_find_minima(f, low, high, kBits, rounds).first;
}

struct Family {
  const char* name;
  double shape_low, shape_high;
};
constexpr Family kFamilies[] = {{"weibull", 0.1, 30}, {"lognormal", 0.02, 5}, {"gamma", 0.1, 1000}};

/// Both numbers: the best scale of each shape, and of those the best shape.
FamilyFit fit_two(const Family& family, std::span<const WaitingSample> samples, double middle) {
  FamilyFit fit{.family = family.name};
  const auto with_shape = [&](double log_shape) {
    fit.shape = std::exp(log_shape);
    // gamma's scale times its shape is where the times are
    const double centre = std::log(fit.family == "gamma" ? middle / fit.shape : middle);
    fit.scale = std::exp(valley(
        [&](double log_scale) {
          fit.scale = std::exp(log_scale);
          return -log_likelihood(fit, samples);
        },
        centre - 5, centre + 8));
    return -log_likelihood(fit, samples);
  };
  with_shape(valley(with_shape, std::log(family.shape_low), std::log(family.shape_high)));
  return fit;
}

}  // namespace

std::vector<FamilyFit> fit_families(std::span<const WaitingSample> samples) {
  int seen = 0;
  double all = 0;
  for (const WaitingSample& s : samples) {
    all += std::max(kLeastSeconds, s.seconds.count());
    seen += s.censored ? 0 : 1;
  }
  if (seen == 0) return {};
  std::vector<FamilyFit> fits{{.family = "exponential", .scale = all / seen}};
  if (seen >= kFewestSeen)
    for (const Family& family : kFamilies)
      fits.push_back(fit_two(family, samples, all / double(samples.size())));
  for (FamilyFit& f : fits) {
    const double numbers = f.family == "exponential" ? 1 : 2;
    const double twice = 2 * log_likelihood(f, samples);
    f.aic = 2 * numbers - twice;
    f.bic = numbers * std::log(double(samples.size())) - twice;
  }
  std::stable_sort(fits.begin(), fits.end(),
                   [](const FamilyFit& a, const FamilyFit& b) { return a.aic < b.aic; });
  return fits;
}

double mean_of(const FamilyFit& f) {
  if (f.family == "exponential") return f.scale;
  if (f.family == "weibull") return f.scale * std::tgamma(1 + 1 / f.shape);
  if (f.family == "lognormal") return f.scale * std::exp(f.shape * f.shape / 2);
  return f.scale * f.shape;
}

double quantile_of(const FamilyFit& f, double p) {
  RECKON_CHECK(p > 0 && p < 1);
  if (f.family == "exponential") return -f.scale * std::log1p(-p);
  if (f.family == "weibull") return f.scale * std::pow(-std::log1p(-p), 1 / f.shape);
  if (f.family == "lognormal")
    return f.scale * std::exp(f.shape * std::numbers::sqrt2 * boost::math::erf_inv(2 * p - 1));
  return f.scale * boost::math::gamma_p_inv(f.shape, p);
}

ParameterValue after_waiting(const ParameterValue& prior, std::span<const WaitingSample> samples,
                             const std::vector<FamilyFit>& families) {
  if (families.empty()) return prior;
  const auto seen = std::count_if(samples.begin(), samples.end(),
                                  [](const WaitingSample& s) { return !s.censored; });
  ParameterValue said{quantile_of(families.front(), 0.5), 0, 0};
  if (seen >= kFewestSeen) {
    said.low = quantile_of(families.front(), 0.05);
    said.high = quantile_of(families.front(), 0.95);
  } else {
    double logs = 0;
    for (const WaitingSample& s : samples)
      if (!s.censored) logs += std::log(std::max(kLeastSeconds, s.seconds.count())) / double(seen);
    said.value = std::exp(logs);
    said.low = said.value * prior.low / prior.value;
    said.high = said.value * prior.high / prior.value;
  }
  const double weight = double(seen) / (double(seen) + kPriorSamples);
  const auto between = [weight](double a, double b) {
    constexpr double kLeast = 1e-6;  // seconds
    return std::exp((1 - weight) * std::log(std::max(a, kLeast)) +
                    weight * std::log(std::max(b, kLeast)));
  };
  return {between(prior.value, said.value), between(prior.low, said.low),
          between(prior.high, said.high)};
}

MeanEstimate exponential_mean(const ParameterValue& prior, int events, Seconds exposure) {
  const double spread = log_spread(prior), centre = std::log(prior.value);
  // Newton's method in ln m; the function is concave there.
  double x = events > 0 ? std::log(exposure.count() / events) : centre;
  double curvature = 1;
  for (int round = 0; round < 100; ++round) {
    const double waited = exposure.count() / std::exp(x);
    const double slope = -events + waited - (x - centre) / (spread * spread);
    curvature = waited + 1 / (spread * spread);
    const double step = std::clamp(slope / curvature, -1.0, 1.0);
    x += step;
    if (std::abs(step) < 1e-10) break;
  }
  return {std::exp(x), 1 / std::sqrt(curvature)};
}

}  // namespace reckon
