#include <algorithm>
#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Ways to buy: commitments, blocks, private reservations, least rental times, data that leaves.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string bought(const std::string& prices, const std::string& pricing = "on_demand") {
  return R"(
name: bought
start: 2026-12-01T00:00:00Z
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
    - {name: v100, machine: p3.2xlarge, nodes: 2, pricing: )" +
         pricing + "}\nprices: {" + prices + "}\n";
}

Plan plan_of_bought(const std::string& prices, const std::string& pricing = "on_demand") {
  return test::checked_plan_of(bought(prices, pricing));
}

std::string reserved(const std::string& rest) {
  return "reserved: [{machine: p3.2xlarge, count: 2, " + rest + "}]";
}

}  // namespace

TEST_CASE("a commitment's price is so much off the list, over its term, and covers on demand") {
  const Plan plan = plan_of_bought(reserved("kind: commitment, term: 1y, discount: 25%"));
  const auto& held = plan.pools.front().reservation;
  REQUIRE(held);
  CHECK(held->kind == ReservationKind::commitment);
  CHECK(held->term->count() == 365 * 86400.0);
  REQUIRE(held->list);
  CHECK(double(held->price.nano_usd_per_hour) ==
        Approx(0.75 * double(held->list->nano_usd_per_hour)));
  CHECK_FALSE(held->whole);
  CHECK_FALSE(held->goes());
  CHECK_THAT(errors_of(bought(reserved("kind: commitment, term: 1y, discount: 25%"), "reserved")),
             Contains("no reservation covers pool 'v100'"));
}

TEST_CASE("a block is sold in the provider's steps, and its machines go before its end") {
  const Plan plan = plan_of_bought(
      reserved("kind: block, from: 2026-12-02, length: 14d, price: 2 USD/h"), "reserved");
  const auto& held = plan.pools.front().reservation;
  REQUIRE(held);
  CHECK(held->whole);
  CHECK(held->from.count() == 86400);
  CHECK(held->until->count() == 15 * 86400);
  CHECK(held->goes()->count() == 15 * 86400 - 1800);  // AWS: half an hour before
  const auto refused = [](const std::string& length) {
    return errors_of(
        bought(reserved("kind: block, length: " + length + ", price: 2 USD/h"), "reserved"));
  };
  CHECK(refused("28d").empty());
  CHECK_THAT(refused("15d"), Contains("aws sells no block of 15 d") && Contains("21 d"));
  CHECK_THAT(refused("36h"), Contains("aws sells no block of") && Contains("in steps of 1 d"));
  CHECK_THAT(refused("189d"), Contains("aws sells no block of 189 d") && Contains("at most 182 d"));
  CHECK_THAT(errors_of(bought("reserved: [{machine: p3.2xlarge, count: 65, kind: block, length: "
                              "1d, price: 2 USD/h}]",
                              "reserved")),
             Contains("no block of 65 machines") && Contains("at most 64"));
}

TEST_CASE("a private reservation costs nothing at the margin, or the owner's rate") {
  const Plan paid = plan_of_bought(reserved("kind: private"), "reserved");
  CHECK(paid.pools.front().reservation->price.nano_usd_per_hour == 0);
  const Plan own = plan_of_bought(reserved("kind: private, price: 0.50 USD/h"), "reserved");
  CHECK(own.pools.front().reservation->price.nano_usd_per_hour == 500'000'000);
}

TEST_CASE("what a kind of reservation lacks or cannot have is said at its place") {
  const auto errors = [](const std::string& rest) { return errors_of(bought(reserved(rest))); };
  CHECK_THAT(errors("until: 2026-12-31"), Contains("needs 'price'"));
  CHECK_THAT(errors("price: 2 USD/h, discount: 10%"),
             Contains("'discount' cannot stand beside 'price'"));
  CHECK_THAT(errors("kind: commitment, price: 2 USD/h"), Contains("a commitment needs 'term'"));
  CHECK_THAT(errors("kind: commitment, term: 1y, from: 2026-12-02, price: 2 USD/h"),
             Contains("a commitment has no 'from'"));
  CHECK_THAT(errors("term: 1y, price: 2 USD/h"), Contains("'term' is of kind 'commitment'"));
  CHECK_THAT(errors("kind: block, price: 2 USD/h"), Contains("a block needs 'length'"));
  CHECK_THAT(errors("kind: block, length: 7d, until: 2026-12-08, price: 2 USD/h"),
             Contains("'length' cannot stand beside 'until'"));
}

TEST_CASE("a machine's least rental time is the scenario's") {
  const Plan plan = plan_of_bought("minimum_rental: {p3.2xlarge: 7d}");
  CHECK(plan.pools.front().minimum_rental.count() == 7 * 86400);
  CHECK(plan_of_bought("discount: 0%").pools.front().minimum_rental.count() == 0);
}

TEST_CASE("data that leaves has the provider's price, or the user's") {
  const Plan plan = plan_of_bought("egress: {checkpoints_in: us-west-2, data_in: us-east-1}");
  CHECK(plan.egress.checkpoints);
  CHECK_FALSE(plan.egress.data);  // that is the cluster's own
  CHECK(plan.egress.between_regions.value == Approx(0.02));
  CHECK(plan.egress.between_regions.low == Approx(0.01));
  const auto assumptions = assumptions_of(plan);
  CHECK(std::ranges::any_of(assumptions,
                            [](const auto& a) { return a.key == "egress.between_regions"; }));
  const Plan own = plan_of_bought(
      "currency: EUR, usd_rate: 0.5, egress: {zones: 2, between_zones: 0.01 EUR/GB}");
  CHECK(own.egress.between_zones.value == Approx(0.02));
  CHECK_FALSE(own.egress.between_zones.assumed);
  CHECK_THAT(errors_of(bought("egress: {between_zones: 0.01 USD/h, zones: 2}")),
             Contains("'0.01 USD/h' is not a price of data such as 0.02 USD/GB"));
}
