#include "sim/measurement/calibration/waiting_times.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"

namespace reckon {
namespace {

constexpr Purpose kWaits{"test_waits"};

/// Quantiles of a family at the middles of n equal parts: a sample without luck.
std::vector<WaitingSample> even(const FamilyFit& family, int n) {
  std::vector<WaitingSample> samples;
  for (int k = 0; k < n; ++k)
    samples.push_back({Seconds{quantile_of(family, (k + 0.5) / n)}, false});
  return samples;
}

}  // namespace

TEST_CASE("the family that waits come from is found, with its numbers") {
  const std::vector<FamilyFit> families{{"exponential", 300, 1, 0, 0},
                                        {"weibull", 300, 3, 0, 0},
                                        {"lognormal", 300, 0.8, 0, 0},
                                        {"gamma", 30, 5, 0, 0}};
  for (const FamilyFit& truth : families) {
    INFO(truth.family);
    const auto fits = fit_families(even(truth, 400));
    REQUIRE(fits.size() == 4);
    CHECK(fits.front().family == truth.family);
    CHECK(fits.front().scale == Approx(truth.scale).epsilon(0.05));
    CHECK(fits.front().shape == Approx(truth.shape).epsilon(0.05));
    CHECK(mean_of(fits.front()) == Approx(mean_of(truth)).epsilon(0.03));
  }
}

TEST_CASE("waits that were cut off are no ends") {
  // Exponential with a mean of 300 s, watched for 200 s: the mean of what was seen is far below.
  RandomStream random(1, 0, kWaits, 0);
  std::vector<WaitingSample> samples;
  double seen = 0;
  int ends = 0;
  for (int k = 0; k < 2000; ++k) {
    const double t = -300 * std::log(1 - random.uniform());
    samples.push_back({Seconds{std::min(t, 200.0)}, t > 200});
    if (t <= 200) seen += t, ++ends;
  }
  CHECK(seen / ends < 100);
  const auto fits = fit_families(samples);
  REQUIRE(!fits.empty());
  CHECK(mean_of(fits.front()) == Approx(300).epsilon(0.1));
}

TEST_CASE("few waits have no family of two numbers, none has none") {
  const std::vector<WaitingSample> few{{Seconds{10}, false}, {Seconds{20}, false}};
  REQUIRE(fit_families(few).size() == 1);
  CHECK(fit_families(few).front().scale == 15);
  const std::vector<WaitingSample> none{{Seconds{10}, true}};
  CHECK(fit_families(none).empty());
}

TEST_CASE("the catalog's waits count like four samples") {
  const ParameterValue prior{100, 50, 200};
  // 4 of 4 + 4: half way in the logarithm, from 100 to 400; the range about it stays
  const std::vector<WaitingSample> four(4, {Seconds{400}, false});
  const ParameterValue v = after_waiting(prior, four, fit_families(four));
  CHECK(v.value == Approx(200));
  CHECK(v.low == Approx(100));
  CHECK(v.high == Approx(400));
  const std::vector<WaitingSample> none;
  CHECK(after_waiting(prior, none, {}).value == 100);
}

TEST_CASE("a mean time grows with what was waited in vain and follows many events") {
  const ParameterValue prior{8 * 3600, 2 * 3600, 24 * 3600};
  CHECK(exponential_mean(prior, 0, Seconds{0}).mean == Approx(prior.value));
  CHECK(exponential_mean(prior, 0, Seconds{100.0 * 3600}).mean > 1.5 * prior.value);
  // 1000 events: an error of 1/sqrt(1000), and the prior is outweighed
  const MeanEstimate many = exponential_mean(prior, 1000, Seconds{1000.0 * 3600});
  CHECK(many.mean == Approx(3600).epsilon(0.01));
  CHECK(many.log_error == Approx(1 / std::sqrt(1000.0)).epsilon(0.01));
}

}  // namespace reckon
