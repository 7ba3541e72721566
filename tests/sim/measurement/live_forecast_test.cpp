#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "sim/base/random.h"
#include "sim/measurement/live_forecast.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;

constexpr Purpose kNoise{"test_noise"};

/// 1,000 steps of 2 s, known to a factor of 0.8 to 1.25; 100 s of start-up; 10 % of the steps' time
/// for checkpoints, of which one is made behind every 100 s of steps; 1 USD an hour.
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
  f.badput[std::size_t(Badput::initialization)] = 100 / f.time_seconds.mean;
  f.badput[std::size_t(Badput::checkpoint_save)] =
      (f.time_seconds.mean - 100) / 11 / f.time_seconds.mean;
  f.checkpoint_interval = 100s;
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
  for (int k = 0; k < 200; ++k) {
    live.add_step(2.2s);
    if (k % 50 == 49) live.add_save(10s);
  }
  const LiveEstimate e = live.at(580s, 200);
  CHECK(e.step.count() == Approx(2.2).epsilon(0.005));
  // 580 + 800 * 2.2 + 15 saves of 10 s, for none is made at the very end: 2490
  CHECK(e.time_seconds.p50 == Approx(2490).epsilon(0.01));
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

TEST_CASE("evaluations come when they come, not evenly") {
  Forecast f = forecast_of_steps();
  for (double& time : f.times_seconds) time += 300;  // one at the end
  f.time_seconds = quantiles(f.times_seconds);
  f.badput = {};
  f.badput[std::size_t(Badput::initialization)] = 100 / f.time_seconds.mean;
  LiveForecast evenly(f, std::nullopt), at_end(f, std::nullopt);
  at_end.set_evaluations([](std::int64_t steps_done) { return steps_done <= 1000 ? 1.0 : 0.0; });
  for (LiveForecast* live : {&evenly, &at_end})
    for (int k = 0; k < 900; ++k) live->add_step(2s);
  const double besides = 200 + 300;  // as 10 % of the steps that no cause names are so, too
  CHECK(at_end.at(2000s, 900).time_seconds.p50 - evenly.at(2000s, 900).time_seconds.p50 ==
        Approx(0.9 * besides).epsilon(0.01));
  CHECK(at_end.at(2500s, 1000).time_seconds.p50 == Approx(2500));
}

TEST_CASE("measured saves take the place of those that were forecast") {
  // 100 s of steps between two saves of 10 s were forecast; the disk takes 10 ms, or a minute.
  for (const double save : {0.01, 60.0}) {
    INFO("a save takes " << save);
    LiveForecast live(forecast_of_steps(), std::nullopt);
    double elapsed = 100, first_width = 0;
    int saves = 0;
    for (int k = 0; k < 1000; ++k) {
      live.add_step(2s);
      elapsed += 2;
      if (k % 50 != 49 || k == 999) continue;
      live.add_save(Seconds{save});
      elapsed += save;
      const double truth = 100 + 2000 + 19 * save;
      const Quantiles q = live.at(Seconds{elapsed}, k + 1).time_seconds;
      INFO("behind " << k + 1 << " steps: " << q.p5 << " to " << q.p95 << ", truth " << truth);
      CHECK(q.p5 <= truth);
      CHECK(truth <= q.p95);
      if (++saves == 1) first_width = q.p95 - q.p5;
      if (saves == 10) CHECK(q.p95 - q.p5 < 0.3 * first_width);
    }
  }
}

TEST_CASE("saves that were due and did not come, or come more often, count as they come") {
  LiveForecast none(forecast_of_steps(), std::nullopt), many(forecast_of_steps(), std::nullopt);
  for (int k = 0; k < 500; ++k) {
    none.add_step(2s);
    many.add_step(2s);
    if (k % 10 == 9) many.add_save(10s);
  }
  // 1,000 s of steps without any of ten saves: of 100 s to come in the middle a tenth is left.
  CHECK(none.at(1100s, 500).time_seconds.p50 == Approx(1100 + 1000 + 10).epsilon(0.002));
  // 49 of 10 s, one behind each 20 s but the last.
  CHECK(many.at(1600s, 500).time_seconds.p50 == Approx(1600 + 1000 + 490).epsilon(0.01));
}

TEST_CASE("saves that no forecast knew of are learned, and those within steps cost nothing more") {
  Forecast f = forecast_of_steps();
  f.badput[std::size_t(Badput::checkpoint_save)] = 0;
  f.checkpoint_interval = 0s;
  LiveForecast surprised(f, std::nullopt), within(forecast_of_steps(), std::nullopt);
  for (int k = 0; k < 500; ++k) {
    surprised.add_step(2s);
    within.add_step(2.2s);
    if (k % 50 != 49) continue;
    surprised.add_save(20s);
    within.add_save(0s);
  }
  const double mean_other =
      quantiles(f.times_seconds).p50 - 2100;  // what T holds, and no part does
  CHECK(surprised.at(1300s, 500).time_seconds.p50 ==
        Approx(1300 + 1000 + 180 + mean_other / 2).epsilon(0.01));
  CHECK(within.at(1200s, 500).time_seconds.p50 == Approx(1200 + 1100).epsilon(0.005));
}

TEST_CASE("a forecast that was sure of its steps is corrected by an interval, not by a point") {
  Forecast f = forecast_of_steps();
  f.step_factors.assign(f.step_factors.size(), 1);
  f.times_seconds.assign(f.times_seconds.size(), 2300);
  f.badput[std::size_t(Badput::checkpoint_save)] = 200.0 / 2300;
  LiveForecast live(f, std::nullopt);
  for (int k = 0; k < 9; ++k) live.add_step(Seconds{2.5 + 0.1 * (k % 3)});
  const Quantiles q = live.at(123s, 9).time_seconds;
  const double truth = 123 + 991 * 2.6 + 198;  // with 19.8 saves of 10 s, as forecast
  CHECK(q.p95 - q.p5 > 50);
  CHECK(q.p5 < truth);
  CHECK(q.p95 > truth);
}

TEST_CASE("what the start took is behind a run that has begun its steps") {
  Forecast f = forecast_of_steps();
  for (std::size_t k = 0; k < f.start_seconds.size(); ++k) {
    f.step_factors[k] = 1;
    f.start_seconds[k] = 2.0 * double(k);  // 0 to 200 s
    f.times_seconds[k] = 2000 + f.start_seconds[k];
  }
  f.badput = {};
  f.checkpoint_interval = 0s;
  LiveForecast live(f, std::nullopt);
  const Quantiles before = live.at(1s, 0).time_seconds;
  CHECK(before.p95 - before.p5 == Approx(180));
  live.add_step(2s, true);
  for (int k = 0; k < 20; ++k) live.add_step(2s);
  const Quantiles after = live.at(45s, 21).time_seconds;
  CHECK(after.p50 == Approx(45 + 979 * 2).epsilon(0.01));
  CHECK(after.p95 - after.p5 < 60);  // of the steps alone, known to a hundredth
}

/// Of 400 runs drawn from the forecast, with steps and saves that differ by as much: how many of
/// the 90 % intervals after `seen` of 1,000 steps hold the true end. A save takes `cost` of what
/// was forecast for it.
int runs_inside(int seen, double cost) {
  const Forecast f = forecast_of_steps();
  int inside = 0;
  for (std::uint32_t run = 0; run < 400; ++run) {
    RandomStream random(11, run, kNoise, 0);
    const auto drawn = std::size_t(random.uniform() * 101);
    LiveForecast live(f, std::nullopt);
    double elapsed = 100, work = 0;
    Quantiles q;
    for (int k = 0; k < 1000; ++k) {
      const double step = 2 * f.step_factors[drawn] * std::exp(0.1 * random.normal());
      elapsed += step;
      work += step;
      live.add_step(Seconds{step}, k == 0);
      if (work >= 100 && k < 999) {
        const double save = 10 * cost * std::exp(0.3 * random.normal());
        elapsed += save;
        work = 0;
        live.add_save(Seconds{save});
      }
      if (k + 1 == seen) q = live.at(Seconds{elapsed}, seen).time_seconds;
    }
    inside += q.p5 <= elapsed && elapsed <= q.p95 ? 1 : 0;
  }
  return inside;
}

TEST_CASE("the interval holds the truth with saves that are cheaper and dearer than forecast") {
  for (const double cost : {0.0001, 1.0, 6.0})
    for (const int seen : {100, 150, 300, 500, 700, 900}) {
      const int inside = runs_inside(seen, cost);
      INFO("saves of " << cost << " of the forecast's, " << seen << " steps seen: " << inside);
      CHECK(inside >= 320);
      CHECK(inside <= 392);
    }
}

TEST_CASE("what earlier parts have spent stays, and only this part's time is paid for") {
  const Forecast f = forecast_of_steps();
  LiveForecast live(f, std::nullopt);
  for (int k = 0; k < 200; ++k) live.add_step(2s);
  const double alone = live.at(500s, 200).cost_usd->p50;
  // 400 s of the 500 were other parts', which cost 7 USD: 1 USD an hour is paid for the rest.
  live.set_spent(Usd{7}, 400s);
  CHECK(live.at(500s, 200).cost_usd->p50 == Approx(alone + 7 - 400.0 / 3600));
}

TEST_CASE("the probability to pass a budget is the share of replications that do") {
  const Forecast f = forecast_of_steps();
  LiveForecast live(f, std::nullopt);
  CHECK(!live.at(0s, 0).excess_probability);
  live.set_budget(Usd{2500.0 / 3600});  // at 1 USD an hour the deadline of the first test
  CHECK(live.at(0s, 0).excess_probability == Approx(31.0 / 101));
}

}  // namespace
}  // namespace reckon
