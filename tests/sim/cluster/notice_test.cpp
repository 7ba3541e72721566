#include "sim/cluster/notice.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "lives.h"
#include "sim/base/random.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

NoticeRules any_rules() {
  const auto seconds = [](int high) { return Seconds{double(*rc::gen::inRange(0, high))}; };
  return {.policy = OnNotice::save,
          .reaction = seconds(20),
          .step = seconds(30),
          .save = seconds(120),
          .writers = *rc::gen::inRange(1, 200),
          .writer_spread = *rc::gen::inRange(0, 50) / 100.0};
}

/// Four spot nodes that live eight hours in the mean, for about two weeks of training.
Case spot_fortnight(Seconds interval, Seconds save, Seconds notice) {
  Case c = round_case(4, 8);
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.reclaim.law = ExponentialReclaim{8h};
  c.plan.reclaim.notice = notice;
  c.pace.steps = 1'000'000;
  c.pace.checkpoint_writers = 4;
  checkpoints(c, interval, save, 30s);
  return c;
}

struct Lost {
  double work = 0, square = 0, reclaims = 0, notices = 0, in_time = 0;
  double mean() const { return work / reclaims; }
};

/// Lost work of the gang, in seconds, and the reclaims that it was lost to.
Lost lost_in(Case c, int lives) {
  Lost lost;
  for (int k = 0; k < lives; ++k) {
    c.options.replication = std::uint32_t(k);
    const LifeResult life = c.run();
    lost.work += badput(life, Badput::lost_work) / 32;
    lost.reclaims += double(count(life, Interruption::preemption));
    lost.notices += double(life.jobs.front().notices);
    lost.in_time += double(life.jobs.front().notices_in_time);
  }
  return lost;
}

}  // namespace

TEST_CASE("the probability of a save in time is the share of the times that are short enough") {
  CHECK(rc::check([] {
    const NoticeRules rules = any_rules();
    const Seconds notice{double(*rc::gen::inRange(1, 200))};
    constexpr int kDraws = 4000;
    RandomStream stream(std::uint64_t(*rc::gen::inRange(1, 1'000'000)), 0, Purpose{"notice_test"},
                        0);
    int in_time = 0;
    for (int k = 0; k < kDraws; ++k) {
      const double step = stream.uniform(), writer = stream.uniform();
      in_time += time_to_saved(rules, {step, writer}) <= notice;
    }
    const double p = probability_of_save(rules, notice);
    // Five standard errors of the draws, and the grid of the integral.
    const double error = 5 * std::sqrt(std::max(p * (1 - p), 0.25 / kDraws) / kDraws) + 1.0 / 512;
    RC_ASSERT(std::abs(double(in_time) / kDraws - p) <= error);
  }));
}

TEST_CASE("a longer notice helps a save, more writers and a longer step do not") {
  CHECK(rc::check([] {
    const NoticeRules rules = any_rules();
    const Seconds notice{double(*rc::gen::inRange(1, 200))};
    const double p = probability_of_save(rules, notice);
    RC_ASSERT(probability_of_save(rules, notice + 5s) >= p);
    NoticeRules worse = rules;
    worse.writers += 10;
    RC_ASSERT(probability_of_save(worse, notice) <= p);
    worse = rules;
    worse.step += 5s;
    RC_ASSERT(probability_of_save(worse, notice) <= p + 1.0 / 512);
    worse = rules;
    worse.policy = OnNotice::none;
    RC_ASSERT(probability_of_save(worse, notice) == 0);
    RC_ASSERT(time_to_saved(worse, {}) == Seconds::max());
  }));
}

TEST_CASE("of 64 writers the slowest is waited for") {
  // ln of a writer's time: mean ln 20 s, deviation 0.15. All 64 below 28 s: F(ln(28/20) / 0.15)^64
  // = F(2.243)^64 = 0.98755^64 = 0.4487; one alone 0.98755.
  NoticeRules rules{.save = 20s, .writers = 64, .writer_spread = 0.15};
  CHECK(probability_of_save(rules, 28s) == Approx(0.4487).margin(0.001));
  rules.writers = 1;
  CHECK(probability_of_save(rules, 28s) == Approx(0.98755).margin(0.0001));
  rules.reaction = 8s;
  CHECK(probability_of_save(rules, 28s) == Approx(0.5).margin(0.0001));  // the median
}

TEST_CASE("a program that saves nothing on a notice loses half an interval a reclaim") {
  for (const Seconds interval : {Seconds{10min}, Seconds{40min}}) {
    Case c = spot_fortnight(interval, 20s, 120s);
    c.plan.jobs[0].checkpoint.notice.policy = OnNotice::none;
    constexpr int kLives = 60;
    const Lost lost = lost_in(c, kLives);
    REQUIRE(lost.reclaims > 3000);
    CHECK(lost.in_time == 0);
    // The gang is interrupted every M = 8 h / 4 in the mean, without memory, in a cycle of I =
    // interval and d = save that begins anew with each save. Work lost at an age t of the cycle:
    // min(t, I); ages have the density exp(-t/M) / M / (1 - exp(-(I+d)/M)) on [0, I + d] [Daly
    // 2006, Sec. 2]:
    //   (M - exp(-I/M) (M + I)) + I (exp(-I/M) - exp(-(I+d)/M)), over 1 - exp(-(I+d)/M)
    const double m = 7200, i = interval.count(), d = 20;
    const double e = std::exp(-i / m), end = std::exp(-(i + d) / m);
    const double expected = (m - e * (m + i) + i * (e - end)) / (1 - end);
    CHECK(expected == Approx(i / 2).epsilon(0.1));  // to first order, Young's
    const double error = i / std::sqrt(12 * lost.reclaims);
    CHECK(std::abs(lost.mean() - expected) < 4 * error);
  }
}

TEST_CASE("lost work grows with the time between checkpoints, whatever the program does") {
  for (const OnNotice policy : {OnNotice::save, OnNotice::none}) {
    double before = 0;
    for (const Seconds interval : {Seconds{5min}, Seconds{15min}, Seconds{45min}, Seconds{2h}}) {
      Case c = spot_fortnight(interval, 20s, 30s);
      PlannedNotice& notice = c.plan.jobs[0].checkpoint.notice;
      notice.policy = policy;
      notice.reaction = Fact<Seconds>{2s};
      notice.writer_spread = Fact<double>{0.3};
      const Lost lost = lost_in(c, 30);
      CHECK(lost.work > 1.5 * before);
      before = lost.work;
      if (policy == OnNotice::none) continue;
      // 20 s with a spread of 0.3 and the slowest of four: F(ln(28/20) / 0.3)^4 = 0.869^4 = 0.5703.
      const double p = probability_of_save(
          {.reaction = 2s, .save = 20s, .writers = 4, .writer_spread = 0.3}, 30s);
      CHECK(p == Approx(0.5703).margin(0.002));
      CHECK(lost.in_time / lost.notices == Approx(p).margin(4 * 0.5 / std::sqrt(lost.notices)));
    }
  }
}

TEST_CASE("a save that can never be in time is as good as none, one that always is loses nothing") {
  Case none = spot_fortnight(20min, 40s, 30s);
  none.plan.jobs[0].checkpoint.notice.policy = OnNotice::none;
  Case late = none;
  late.plan.jobs[0].checkpoint.notice.policy = OnNotice::save;
  // Its own save, when one is under way at the notice, may still be: 40 s of each 1,240 s.
  const Lost never = lost_in(none, 10), hardly = lost_in(late, 10);
  CHECK(hardly.in_time < 0.05 * hardly.notices);
  CHECK(hardly.mean() == Approx(never.mean()).epsilon(0.06));
  late.plan.reclaim.notice = 60s;
  // But for nodes that were told while the job started and went in its first seconds of training.
  CHECK(lost_in(late, 10).mean() < 1);
}

TEST_CASE("what is left of the step under way is waited for") {
  Case c = round_case();
  checkpoints(c, 100s, 10s);
  c.plan.jobs[0].checkpoint.notice.between_steps = true;
  c.pace.steps = 10;
  c.pace.step_by_workers.back() = 100s;
  reclaim_at(c, {{350s}}, 60s);
  // Told at 290, 90 s into a step of 100 s; the life draws what is left of it, in (0, 100 s): saved
  // at 290 + u 100 + 10, in time where u < 0.5.
  int in_time = 0;
  constexpr int kLives = 400;
  for (int k = 0; k < kLives; ++k) {
    c.options.replication = std::uint32_t(k);
    in_time += int(c.run().jobs.front().notices_in_time);
  }
  CHECK(in_time == Approx(kLives / 2).margin(4 * 0.5 * std::sqrt(kLives)));
}

TEST_CASE("without a policy to save, maintenance loses the work since the checkpoint, too") {
  Case c = round_case(2, 1);
  c.pace.steps = 200'000;
  checkpoints(c, 1000s, 10s);
  c.plan.maintenance = {
      .on = true, .every = Fact<Seconds>{20'000s}, .notice = 1h, .duration = Fact<Seconds>{600s}};
  CHECK(badput(c.run(), Badput::lost_work) == 0);
  c.plan.jobs[0].checkpoint.notice.policy = OnNotice::none;
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) > 0);
  CHECK(count(life, Interruption::maintenance) > 5);
}
