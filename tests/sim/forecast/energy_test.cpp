#include "sim/forecast/energy.h"

#include <catch2/catch.hpp>

#include "sim/forecast/forecast.h"
#include "support/plans.h"

using namespace reckon;

namespace {

/// Two nodes of one accelerator of 400 W and 10 vCPUs; all numbers of power are certain.
Plan lit_plan() {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  for (PlannedPool& pool : plan.pools) {
    pool.accelerator->power_watts = 400;
    pool.machine.vcpus = 10;
    pool.machine.memory = Fact<Bytes>{Bytes{100e9}};
  }
  plan.power.busy_share = Fact<double>{0.9};
  plan.power.idle_share = Fact<double>{0.1};
  plan.power.watts_per_vcpu = Fact<double>{2};
  plan.power.watts_per_gb = Fact<double>{0.4};
  plan.power.pue = Fact<double>{1.5};
  plan.power.grams_per_kwh = Fact<double>{200.0};
  return plan;
}

/// A life in which each of two nodes was billed for two hours and its accelerator trained for one.
LifeResult two_hours(const Plan& plan) {
  LifeResult life;
  life.node_time.resize(plan.pools.size());
  life.node_time.front() += to_clock(Seconds{4 * 3600});
  life.goodput = accelerator_time(2, to_clock(Seconds{3600}));
  return life;
}

}  // namespace

TEST_CASE("a run's energy is that of its nodes and of its accelerators while they compute") {
  const Plan plan = lit_plan();
  const auto e = energy_of(plan, 0.5, 1, {two_hours(plan)});
  REQUIRE(e);
  // 4 node-hours x (10 x 2 + 100 x 0.4 + 400 x 0.1 = 100 W) = 400 Wh; two accelerators for an hour,
  // half of it computing: 2 x 0.5 x 400 x (0.9 - 0.1) = 320 Wh; 720 Wh x 1.5 = 1080 Wh.
  CHECK(e->joules.p50 == Approx(1080 * 3600));
  REQUIRE(e->co2_grams);
  CHECK(e->co2_grams->p50 == Approx(1.080 * 200));
  // 100 W and half of 400 x 0.8 W
  CHECK(e->watts == Approx(260));
}

TEST_CASE("several jobs compute in the share of their accelerators' time together") {
  StepEstimate half, busy;
  half.step = Seconds{1};
  half.compute = Seconds{0.3};
  half.update = Seconds{0.2};
  busy.step = busy.compute = Seconds{2};
  CHECK(computing_share({{10, half}}) == Approx(0.5));
  // 30 accelerator seconds at a half, and 10 x 2 in which all compute.
  CHECK(computing_share({{30, half}, {10, busy}}) == Approx((15.0 + 20) / 50));
  CHECK(computing_share({{10, busy}, {30, half}}) == Approx((15.0 + 20) / 50));
  CHECK(computing_share({}) == 0);
}

TEST_CASE("work that was lost took power like work that was kept") {
  const Plan plan = lit_plan();
  LifeResult lost = two_hours(plan);
  const double kept = energy_of(plan, 1, 1, {lost})->joules.p50;
  std::swap(lost.goodput, lost.badput[std::size_t(Badput::lost_work)]);
  CHECK(energy_of(plan, 1, 1, {lost})->joules.p50 == Approx(kept));
}

TEST_CASE("an accelerator whose power nobody prints, or a grid that is not known, is not guessed") {
  Plan plan = lit_plan();
  plan.power.grams_per_kwh.reset();
  const auto e = energy_of(plan, 0, 1, {two_hours(plan)});
  REQUIRE(e);
  CHECK_FALSE(e->co2_grams);
  plan.pools.front().accelerator->power_watts = 0;
  CHECK_FALSE(energy_of(plan, 0, 1, {two_hours(plan)}));
}

TEST_CASE("what is assumed of power widens the energy") {
  Plan plan = lit_plan();
  plan.power.pue = Fact<double>{1.5, 1.2, 1.9, SourceId::user};
  const auto e = energy_of(plan, 0, 1, std::vector<LifeResult>(256, two_hours(plan)));
  REQUIRE(e);
  CHECK(e->joules.p5 == Approx(400 * 1.2 * 3600).epsilon(0.02));
  CHECK(e->joules.p50 == Approx(400 * 1.5 * 3600).epsilon(0.01));
  CHECK(e->joules.p95 == Approx(400 * 1.9 * 3600).epsilon(0.02));
}
