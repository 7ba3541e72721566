#include "sim/scenario/resolve/price_spread.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/catalog/operations_keys.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;
using planning::PriceRange;

namespace {

std::string cloud(const std::string& pool, const std::string& more = "") {
  return R"(
name: cloud
)" + more +
         R"(
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 90}
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
cluster:
  provider: aws
  region: us-east-1
  pools:
    - {name: v100, machine: p3.2xlarge, accelerator: {type: V100-SXM2-16, count: 1}, nodes: 2)" +
         pool + "}\n";
}

Plan plan_from(const std::string& text) { return test::checked_plan_of(text); }

OperationalDefaults moves_of(double fall, double rise) {
  OperationalDefaults operations;
  for (const std::string_view key : {keys::kSpotFall, keys::kListFall})
    operations.numbers[std::string(key)] = Fact<double>{fall, SourceId{3}};
  for (const std::string_view key : {keys::kSpotRise, keys::kListRise})
    operations.numbers[std::string(key)] = Fact<double>{rise, SourceId{3}};
  return operations;
}

}  // namespace

TEST_CASE("a price's range widens with the root of its age, beside the range of its zones") {
  const OperationalDefaults operations = moves_of(0.5, 1.0);  // half and twice after a year
  const Fact<UsdPerSecond> plain{UsdPerSecond{1.0}, SourceId{3}};
  const PriceRange now = planning::range_after(plain, CapacityType::spot, 0, operations);
  CHECK(now.certain());
  const PriceRange year = planning::range_after(plain, CapacityType::spot, 1, operations);
  CHECK(year.low == Approx(0.5));
  CHECK(year.high == Approx(2));
  const PriceRange four = planning::range_after(plain, CapacityType::spot, 4, operations);
  CHECK(four.low == Approx(0.25));  // twice the logarithm
  CHECK(four.high == Approx(4));
  // Zones from 0.8 to 1.25 of the middle: sqrt(ln(1.25)^2 + ln(2)^2) = 0.7282
  const Fact<UsdPerSecond> zones{UsdPerSecond{1.0}, UsdPerSecond{0.8}, UsdPerSecond{1.25},
                                 SourceId{3}};
  const PriceRange both = planning::range_after(zones, CapacityType::spot, 1, operations);
  CHECK(std::log(both.high) == Approx(0.72824).epsilon(1e-4));
  CHECK(std::log(both.low) == Approx(-0.72824).epsilon(1e-4));
}

TEST_CASE("what the user says has the range that the user gives, however old") {
  const OperationalDefaults operations = moves_of(0.5, 1.0);
  const Fact<UsdPerSecond> own{UsdPerSecond{1.0}, SourceId::user};
  CHECK(planning::range_after(own, CapacityType::spot, 9, operations).certain());
  const Fact<UsdPerSecond> range{UsdPerSecond{2.0}, UsdPerSecond{1.0}, UsdPerSecond{3.0},
                                 SourceId::user};
  const PriceRange r = planning::range_after(range, CapacityType::on_demand, 9, operations);
  CHECK(r.low == Approx(0.5));
  CHECK(r.high == Approx(1.5));
}

TEST_CASE("spot prices of a region have a market of their own, list prices one of the provider") {
  const Plan spot = plan_from(cloud(", pricing: spot"));
  const PriceSpread& s = spot.pools.front().price.spread;
  CHECK(s.market == "p3.2xlarge on spot in us-east-1 (aws)");
  CHECK(s.low < 0.7);
  CHECK(s.high > 1.3);
  // 3.06 USD/h on demand over 0.3994 on spot: no one pays more.
  CHECK(s.high <= Approx(3.06 / 0.3994));
  const Plan listed = plan_from(cloud(""));
  const PriceSpread& l = listed.pools.front().price.spread;
  CHECK(l.market == "p3.2xlarge (aws)");
  CHECK(l.low > 0.8);
  CHECK(l.high < 1.1);
}

TEST_CASE("a later start makes the same price less certain") {
  const Plan soon = plan_from(cloud(", pricing: spot", "start: 2025-09-01T00:00:00Z\n"));
  const Plan late = plan_from(cloud(", pricing: spot", "start: 2026-09-01T00:00:00Z\n"));
  CHECK(late.pools.front().price.spread.low < soon.pools.front().price.spread.low);
  CHECK(late.pools.front().price.machine == soon.pools.front().price.machine);
}

TEST_CASE(
    "the user's own prices are certain unless an uncertainty is given, which is everybody's") {
  const std::string own = "prices: {rates: {p3.2xlarge: 2 USD/h}}\n";
  CHECK(plan_from(cloud("", own)).pools.front().price.spread.certain());
  const Plan said =
      plan_from(cloud("", "prices: {rates: {p3.2xlarge: 2 USD/h}, uncertainty: 20%}\n"));
  CHECK(said.pools.front().price.spread.low == Approx(0.8));
  CHECK(said.pools.front().price.spread.high == Approx(1.2));
  const Plan none = plan_from(cloud(", pricing: spot", "prices: {uncertainty: 0%}\n"));
  CHECK(none.pools.front().price.spread.certain());
}

TEST_CASE("a usd_rate that is the wrong way round is reported with the price that shows it") {
  const std::string turned =
      "prices: {currency: RUB, usd_rate: 0.0125, rates: {p3.2xlarge: 200 RUB/h}}\n";
  const std::string errors = errors_of(cloud("", turned));
  // 200 / 0.0125 = 16,000 USD; with 80 RUB for a USD it is 2.50.
  CHECK_THAT(errors,
             Contains("0.0125 RUB for one USD makes an hour of a V100-SXM2-16 1.6e+04 USD"));
  CHECK_THAT(errors, Contains("probably the wrong way round"));
  CHECK_THAT(errors, Contains("usd_rate: 80"));
  CHECK(errors_of(
            cloud("", "prices: {currency: RUB, usd_rate: 80, rates: {p3.2xlarge: 200 RUB/h}}\n"))
            .empty());
}

TEST_CASE("a reservation begins on its first day, and one that is paid whole needs its last") {
  const std::string start = "start: 2026-12-01T12:00:00Z\n";
  const Plan plan = plan_from(
      cloud(", pricing: reserved",
            start + "prices: {reserved: [{machine: p3.2xlarge, count: 2, from: 2026-12-03, until: "
                    "2026-12-16, price: 1 USD/h, whole: true}]}\n"));
  REQUIRE(plan.pools.front().reservation);
  CHECK(plan.pools.front().reservation->from.count() == 1.5 * 86400);
  CHECK(plan.pools.front().reservation->until->count() == 15.5 * 86400);
  CHECK(plan.pools.front().reservation->whole);
  CHECK_THAT(errors_of(cloud("", start + "prices: {reserved: [{machine: p3.2xlarge, count: 2, "
                                         "price: 1 USD/h, whole: true}]}\n")),
             Contains("needs its last day"));
  CHECK_THAT(
      errors_of(cloud("", start + "prices: {reserved: [{machine: p3.2xlarge, count: 2, from: "
                                  "2026-12-09, until: 2026-12-05, price: 1 USD/h}]}\n")),
      Contains("ends on 2026-12-05, before it begins on 2026-12-09"));
  CHECK_THAT(errors_of(cloud("",
                             "prices: {reserved: [{machine: p3.2xlarge, count: 2, from: "
                             "2026-12-09, price: 1 USD/h}]}\n")),
             Contains("needs the day on which the run starts"));
}
