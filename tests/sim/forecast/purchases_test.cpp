#include "sim/forecast/purchases.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/forecast/forecast.h"
#include "support/plans.h"

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

Forecast bought(const PlannedReservation& held, CapacityType pricing = CapacityType::on_demand) {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  plan.pools.front().pricing = pricing;
  plan.pools.front().reservation = held;
  ForecastOptions options;
  options.replications = 32;
  options.threads = 1;
  return make_forecast(plan, *make_fluid_network(), options);
}

bool warns(const Forecast& f, const std::string& text) {
  return std::ranges::any_of(
      f.warnings, [&](const std::string& w) { return w.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("a commitment's price never stands without what it costs in all and the share used") {
  PlannedReservation held;
  held.nodes = 2;
  held.price = {6'000'000'000};
  held.kind = ReservationKind::commitment;
  held.term = Seconds{365 * 86400.0};
  held.list = HourlyRate{8'000'000'000};
  const Forecast f = bought(held);
  REQUIRE(f.purchases.size() == 1);
  const PurchaseForecast& p = f.purchases.front();
  CHECK(*p.total_usd == Approx(2 * 8760 * 6));
  CHECK(*p.break_even == Approx(0.75));
  // What is billed of two nodes, of two nodes for a year.
  CHECK(*p.used == Approx(f.node_hours.front().second / (2 * 8760)));
  CHECK(p.used_usd == Approx(f.node_hours.front().second * 6));
  CHECK(p.outlived == 0);
  CHECK(warns(f, "whether used or not; this run uses"));
  CHECK(warns(f, "on demand is cheaper unless 75.0 % of the term is used"));
}

TEST_CASE("a run that outlives its block says with which probability") {
  PlannedReservation held;
  held.nodes = 2;
  held.price = {6'000'000'000};
  held.kind = ReservationKind::block;
  held.whole = true;
  held.until = Seconds{60};
  const Forecast f = bought(held, CapacityType::reserved);
  REQUIRE(f.purchases.size() == 1);
  CHECK(f.purchases.front().outlived == 1);
  CHECK(f.unfinished_share == Approx(1));
  CHECK(warns(f, "outlives the block of pool"));
  held.until = Seconds{30 * 86400.0};
  const Forecast long_enough = bought(held, CapacityType::reserved);
  CHECK(long_enough.purchases.front().outlived == 0);
  CHECK_FALSE(warns(long_enough, "outlives"));
  CHECK_THAT(text_of(long_enough.purchases.front()), Contains("whether used or not"));
}
