#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "sim/base/random.h"
#include "sim/calibration/live_forecast.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;

constexpr Purpose kNoise{"test_noise"};

/// 1,000 steps of 2 s, known to a factor of 0.8 to 1.25; 100 s of start-up; 10 % of the steps' time
/// for checkpoints; 1 USD an hour.
Forecast forecast_of_steps() {
  Forecast f;
  f.step.step = 2s;
  f.steps = 1000;
  constexpr int kReplications = 101;
  for (int k = 0; k < kReplications; ++k) {
    const double factor = std::exp(std::log(1.25) * (k - 50) / 50.0);
    f.step_factors.push_back(factor);
    f.start_seconds.push_back(100);
    f.times_seconds.push_back(100 + 2000 * factor * 1.1);
    f.costs_usd.push_back(f.times_seconds.back() / 3600);
  }
  f.time_seconds = quantiles(f.times_seconds);
  const double mean = f.time_seconds.mean;
  f.badput[std::size_t(Badput::initialization)] = 100 / mean;
  f.badput[std::size_t(Badput::checkpoint_save)] = 200 / mean;
  f.cost_usd = quantiles(f.costs_usd);
  return f;
}

void check_near(const Quantiles& a, const Quantiles& b, double margin) {
  CHECK(a.p5 == Approx(b.p5).margin(margin));
  CHECK(a.p50 == Approx(b.p50).margin(margin));
  CHECK(a.p95 == Approx(b.p95).margin(margin));
}

TEST_CASE("before anything is measured the live forecast is the forecast") {
  const Forecast f = forecast_of_steps();
  const LiveForecast live(f, 2500s);
  const LiveEstimate e = live.at(0s, 0);
  check_near(e.time_seconds, f.time_seconds, 1e-6);
  REQUIRE(e.cost_usd);
  check_near(*e.cost_usd, *f.cost_usd, 1e-9);
  // 100 + 2200 x > 2500 where x > 1.0909, that is (k - 50) / 50 > 0.3899: k of 70 to 100.
  CHECK(e.miss_probability == Approx(31.0 / 101));
  // A start that takes longer than was forecast pushes the end back by what it took longer.
  CHECK(live.at(160s, 0).time_seconds.p50 == Approx(f.time_seconds.p50 + 60));
}

TEST_CASE("measured steps move the forecast to their pace and make it sure") {
  const Forecast f = forecast_of_steps();
  LiveForecast live(f, 2500s);
  for (int k = 0; k < 200; ++k) live.add_step(2.2s);
  const LiveEstimate e = live.at(560s, 200);
  CHECK(e.step.count() == Approx(2.2).epsilon(0.005));
  // 560 + 800 * 2.2 + 0.8 * 200 of saving = 2480
  CHECK(e.time_seconds.p50 == Approx(2480).epsilon(0.01));
  const double before = f.time_seconds.p95 - f.time_seconds.p5;
  CHECK(e.time_seconds.p95 - e.time_seconds.p5 < 0.15 * before);
  CHECK(*e.miss_probability > 0.05);
  CHECK(*e.miss_probability < 0.5);
  // Money follows time at the forecast's rate.
  CHECK(e.cost_usd->p50 == Approx(e.time_seconds.p50 / 3600).epsilon(0.001));
}

TEST_CASE("at the last step the forecast is what has passed") {
  LiveForecast live(forecast_of_steps(), std::nullopt);
  for (int k = 0; k < 1000; ++k) live.add_step(3s);
  const LiveEstimate e = live.at(3100s, 1000);
  CHECK(e.time_seconds.p5 == Approx(3100));
  CHECK(e.time_seconds.p95 == Approx(3100));
  CHECK(!e.miss_probability);
}

TEST_CASE("more interruptions than were forecast make the rest longer, fewer make it shorter") {
  Forecast f = forecast_of_steps();
  // Ten interruptions are forecast; half of what is neither steps nor start is theirs.
  f.interruptions[std::size_t(Interruption::preemption)] = 10;
  f.badput = {};
  f.badput[std::size_t(Badput::checkpoint_save)] = 100 / f.time_seconds.mean;
  f.badput[std::size_t(Badput::lost_work)] = 100 / f.time_seconds.mean;
  LiveForecast calm(f, std::nullopt), hit(f, std::nullopt);
  for (int k = 0; k < 500; ++k) {
    calm.add_step(2s);
    hit.add_step(2s);
  }
  for (int k = 0; k < 20; ++k) hit.add_interruption();
  const double elapsed = f.time_seconds.mean / 2;  // five were to be expected
  const double rest = calm.at(Seconds{elapsed}, 500).time_seconds.p50 - elapsed;
  const double hit_rest = hit.at(Seconds{elapsed}, 500).time_seconds.p50 - elapsed;
  // The other time is 200 s in the median without the start, 100 s of it to come, half of that
  // theirs: (1 + 0) / (1 + 5) of 50 s against (1 + 20) / (1 + 5) of it.
  CHECK(hit_rest - rest == Approx(50 * (21 - 1) / 6.0).epsilon(0.02));
}

TEST_CASE("a replication that never ends keeps its share of the answer") {
  Forecast f = forecast_of_steps();
  for (std::size_t k = 0; k < 20; ++k) f.times_seconds[k] = std::numeric_limits<double>::infinity();
  const LiveEstimate e = LiveForecast(f, 1e6s).at(0s, 0);
  CHECK(std::isinf(e.time_seconds.p95));
  CHECK(e.miss_probability == Approx(20.0 / 101));
}

TEST_CASE("the belief is the textbook's: prior spread as told, posterior by the formulas") {
  const NormalBelief prior = NormalBelief::before(0.1, 0.2, 0.05);
  CHECK(prior.spread() == Approx(0.2));
  // weight 0.05^2 / 0.2^2 * 4 / 2 = 0.125. Values 0.3 and 0.5: average 0.4, squares about it 0.02.
  const NormalBelief b = prior.after({0.3, 0.5});
  CHECK(b.weight == Approx(2.125));
  CHECK(b.mean == Approx((0.125 * 0.1 + 2 * 0.4) / 2.125));
  CHECK(b.degrees == 6);
  // (4 * 0.0025 + 0.02 + 0.125 * 2 / 2.125 * 0.09) / 6
  CHECK(b.variance == Approx((0.01 + 0.02 + 0.25 / 2.125 * 0.09) / 6));
  // All at once or one after the other: the same belief.
  const NormalBelief twice = prior.after({0.3}).after({0.5});
  CHECK(twice.mean == Approx(b.mean));
  CHECK(twice.variance == Approx(b.variance));
}

TEST_CASE("blocks double when there are too many, and hold every value once") {
  BlockMeans blocks;
  for (int k = 0; k < 1920; ++k) blocks.add(k);
  // Full at 20 blocks, of 1, 2, ... 64 values: 20 * 64 = 1280 <= 1920 < 20 * 128.
  CHECK(blocks.block() == 128);
  REQUIRE(blocks.means().size() == 15);
  CHECK(blocks.means().front() == 63.5);   // 0..127
  CHECK(blocks.means().back() == 1855.5);  // 1792..1919
}

TEST_CASE("steps that resemble their neighbours do not make the forecast too sure") {
  // The pace drifts from 2 s to 2.4 s and back in 200 steps: the logarithms' standard deviation is
  // 0.06, so that 200 independent steps would claim 0.06 / sqrt(200) = 0.4 %.
  LiveForecast live(forecast_of_steps(), std::nullopt);
  for (int k = 0; k < 200; ++k) live.add_step(Seconds{2 + 0.4 * std::sin(k * 2 * M_PI / 400)});
  CHECK(live.at(500s, 200).step_spread > 0.01);
}

TEST_CASE("the interval of the live forecast holds the truth about as often as it says") {
  // The truth is drawn from the prior, steps are noisy: of 400 runs the 90 % interval at a tenth of
  // the steps must hold the true end in 80 % to 98 %.
  const Forecast f = forecast_of_steps();
  int inside = 0;
  for (std::uint32_t run = 0; run < 400; ++run) {
    RandomStream random(7, run, kNoise, 0);
    const double factor = f.step_factors[std::size_t(random.uniform() * 101)];
    LiveForecast live(f, std::nullopt);
    double elapsed = 100;
    for (int k = 0; k < 100; ++k) {
      const double step = 2 * factor * std::exp(0.1 * random.normal());
      live.add_step(Seconds{step});
      elapsed += step * 1.1;
    }
    double truth = elapsed;
    for (int k = 100; k < 1000; ++k)
      truth += 2 * factor * std::exp(0.1 * random.normal()) + 0.2 * factor;
    const Quantiles q = live.at(Seconds{elapsed}, 100).time_seconds;
    inside += q.p5 <= truth && truth <= q.p95 ? 1 : 0;
  }
  INFO("inside: " << inside);
  CHECK(inside >= 320);
  CHECK(inside <= 392);
}

}  // namespace
}  // namespace reckon
