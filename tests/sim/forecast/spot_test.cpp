#include "sim/forecast/spot.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "support/plans.h"

using namespace reckon;
using namespace std::chrono_literals;

namespace {

/// Two workers for hours, saved every few minutes.
Plan on_demand_plan() {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  PlannedWorkload& job = plan.jobs.front();
  job.checkpoint.mode = CheckpointSpec::Mode::optimal;
  job.checkpoint.save_overhead = Fact<Seconds>(1s);
  job.total_samples *= 40;
  job.steps *= 40;
  plan.replications = 60;
  return plan;
}

/// The same for `share` of the price, with nodes that live half an hour.
Plan spot_plan(double share) {
  Plan plan = on_demand_plan();
  PlannedPool& pool = plan.pools.front();
  pool.pricing = CapacityType::spot;
  const auto cheaper = [share](HourlyRate& rate) {
    rate.nano_usd_per_hour = std::int64_t(double(rate.nano_usd_per_hour) * share);
  };
  cheaper(pool.price.machine);
  cheaper(pool.price.accelerators);
  plan.reclaim.law = ExponentialReclaim{30min};
  plan.reclaim.assumed_mean = Fact<Seconds>(30min, 10min, 90min, SourceId::user);
  plan.reclaim.notice = 60s;
  plan.shortage = {true, Fact<Seconds>{Seconds{2h}}, Fact<Seconds>{Seconds{1h}}};
  return plan;
}

SpotComparison compared(const Plan& spot) {
  ForecastOptions options;
  options.threads = 2;
  return compare_spot(on_demand_plan(), spot, *make_fluid_network(), options);
}

double lost(const Forecast& f) { return f.badput[std::size_t(Badput::lost_work)]; }

}  // namespace

TEST_CASE("spot is slower without capacity, and loses more work without saves") {
  const SpotComparison c = compared(spot_plan(0.3));
  constexpr std::size_t kNoSave = 0, kSaves = 1, kThere = 0, kGone = 1;
  for (const std::size_t saves : {kNoSave, kSaves}) {
    REQUIRE((c.spot[saves][kThere] && c.spot[saves][kGone]));
    CHECK(c.spot[saves][kGone]->time_seconds.mean > c.spot[saves][kThere]->time_seconds.mean);
    CHECK(c.spot[saves][kThere]->time_seconds.mean > c.on_demand.time_seconds.mean);
  }
  CHECK(lost(*c.spot[kNoSave][kThere]) > lost(*c.spot[kSaves][kThere]));
  CHECK(c.saves);
  CHECK(&c.planned() == &*c.spot[kSaves][kGone]);
}

TEST_CASE("spot is cheaper on one side of the life at which it turns, and dearer on the other") {
  Plan spot = spot_plan(0.5);
  const SpotComparison c = compared(spot);
  REQUIRE((c.life && c.life->turns));
  CHECK(c.life->is == Seconds{30min});
  CHECK(c.life->assumed);
  const auto is_cheaper = [&](double factor) {
    spot.reclaim.law = ExponentialReclaim{factor * *c.life->turns};
    spot.reclaim.assumed_mean.reset();  // else it is drawn
    const SpotComparison other = compared(spot);
    return std::isfinite(other.planned().time_seconds.p50) &&  // else it is never done
           other.planned().cost_usd->p50 < c.on_demand.cost_usd->p50;
  };
  CHECK(is_cheaper(1.5));
  CHECK_FALSE(is_cheaper(1 / 1.5));
}

TEST_CASE("nodes at the price on demand are never cheaper on spot") {
  const SpotComparison c = compared(spot_plan(1));
  REQUIRE((c.life && c.gone));
  CHECK_FALSE(c.life->turns);
  CHECK_FALSE(c.gone->turns);
}

TEST_CASE("where nothing can be saved and capacity is always there, those cases are left out") {
  Plan spot = spot_plan(0.3);
  spot.reclaim.notice = 0s;
  spot.shortage.on = false;
  const SpotComparison c = compared(spot);
  CHECK_FALSE(c.spot[1][0]);
  CHECK_FALSE(c.spot[0][1]);
  CHECK_FALSE(c.gone);
  CHECK_FALSE(c.saves);
}
