#include <catch2/catch.hpp>

#include "lives.h"

// Machines bought for days, rented for a least time, and data that leaves its region: ledgers by
// hand. A node costs 1.20 + 2.40 USD/h, is ready after 100 s, and the job needs 1,000 s.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// All nodes of the pool are of a block at 1.80 USD/h.
Case of_a_block(CapacityType pricing, Seconds until, Seconds ends_before = {}) {
  Case c = round_case(1);
  c.plan.pools[0].pricing = pricing;
  PlannedReservation block;
  block.nodes = 1;
  block.price = {1'800'000'000};
  block.until = until;
  block.whole = true;
  block.kind = ReservationKind::block;
  block.ends_before = ends_before;
  c.plan.pools[0].reservation = block;
  return c;
}

}  // namespace

TEST_CASE("the machines of a block go before its end, and a job that has no others ends there") {
  const LifeResult life = of_a_block(CapacityType::reserved, 700s, 100s).run();
  CHECK_FALSE(life.finished);
  CHECK(life.outlived.at(0));
  CHECK(finish_seconds(life) == 600);
  CHECK_THAT(life.failure, Contains("the reservation of pool 'workers' ended before the job did"));
  CHECK(life.bill == to_nano_usd(Usd{0.35}));  // 700 s x 1.80 USD/h: paid whole
  CHECK(to_seconds(life.reserved_time[0]).count() == 600);
  CHECK(badput(life, Badput::lost_work) == 500);  // from 100 s on, without a checkpoint
}

TEST_CASE("a job that is done before its block ends pays the block all the same") {
  const LifeResult life = of_a_block(CapacityType::reserved, 7200s, 1800s).run();
  CHECK(life.finished);
  CHECK_FALSE(life.outlived.at(0));
  CHECK(finish_seconds(life) == 1100);
  CHECK(life.bill == to_nano_usd(Usd{3.6}));  // 2 h x 1.80 USD/h
  CHECK(count(life, Interruption::maintenance) == 0);
}

TEST_CASE("before a block ends the job saves, and goes on at the pool's own price") {
  Case c = of_a_block(CapacityType::on_demand, 600s);
  checkpoints(c, 5000s, 10s);
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  CHECK(life.outlived.at(0));
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(count(life, Interruption::maintenance) == 1);
  // 490 s of work until the save at 590 s, the next node at 700 s, 510 s more.
  CHECK(finish_seconds(life) == 1210);
  CHECK(life.bill == to_nano_usd(Usd{0.30 + 0.61}));  // 600 s x 1.80 + 610 s x 3.60 USD/h
}

TEST_CASE("a job that is submitted after its block does not start") {
  Case c = of_a_block(CapacityType::reserved, 600s);
  c.plan.jobs[0].submit = 700s;
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK_THAT(life.failure, Contains("ended before the job did"));
  CHECK(life.outlived.at(0));
}

TEST_CASE("a commitment holds no machine: it changes the price and nothing else") {
  Case c = round_case(1);
  const LifeResult plain = c.run();
  PlannedReservation commitment;
  commitment.nodes = 1;
  commitment.price = {1'800'000'000};
  commitment.kind = ReservationKind::commitment;
  commitment.term = Seconds{365 * 86400.0};
  c.plan.pools[0].reservation = commitment;
  const LifeResult life = c.run();
  CHECK(life.finish == plain.finish);
  CHECK(life.bill == to_nano_usd(Usd{0.55}));  // 1,100 s x 1.80 USD/h
}

TEST_CASE("a node is billed for its least rental time, each time it is rented") {
  Case c = round_case(1);
  c.plan.pools[0].minimum_rental = 2h;
  const LifeResult life = c.run();
  CHECK(life.bill == to_nano_usd(Usd{7.2}));               // 2 h x 3.60 USD/h
  CHECK(cost(life, CostPart::idle) == Approx(7.2 - 1.0));  // 1,000 s of training cost 1 USD
  CHECK(to_seconds(life.node_time[0]).count() == 7200);
  c.plan.pools[0].minimum_rental = 10s;  // the provider's minute counts, and the lease is longer
  CHECK(c.run().bill == to_nano_usd(Usd{1.10}));
}

TEST_CASE("two nodes rented one after the other pay the least time twice") {
  Case c = round_case(1);
  c.plan.pools[0].minimum_rental = 1h;
  c.plan.billing.free_if_reclaimed_within = {};
  reclaim_at(c, {{500s}});
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  CHECK(life.bill == to_nano_usd(Usd{7.2}));  // 2 x 1 h x 3.60 USD/h
}

TEST_CASE("checkpoints and data of another region cost what leaves it") {
  Case c = round_case(1);
  c.plan.egress.between_regions = Fact<double>{0.02};
  c.pace.checkpoint_size = 10.0_GB;
  c.pace.data_a_step = 1.0_GB;
  checkpoints(c, 300s, 10s);
  CHECK(cost(c.run(), CostPart::network) == 0);  // all is in the region
  c.plan.egress.checkpoints = true;
  // 1,000 s of work: saves after 300, 600 and 900 s.
  CHECK(cost(c.run(), CostPart::network) == Approx(3 * 10 * 0.02));
  c.plan.egress.data = true;
  const LifeResult life = c.run();
  CHECK(cost(life, CostPart::network) == Approx(3 * 10 * 0.02 + 1000 * 1 * 0.02));
  NanoUsd sum;
  for (const NanoUsd& part : life.cost) sum += part;
  CHECK(sum == life.bill);
}

TEST_CASE("work done again reads its data again, and a restore leaves the bucket's region") {
  Case c = round_case(1);
  c.plan.egress = {.between_regions = Fact<double>{0.02}, .checkpoints = true, .data = true};
  c.pace.checkpoint_size = 10.0_GB;
  c.pace.data_a_step = 1.0_GB;
  checkpoints(c, 300s, 10s);
  // Trains from 100 s, saves at 400 s, is taken at 500 s: 90 s of work are done again.
  reclaim_at(c, {{500s}});
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  CHECK(badput(life, Badput::lost_work) == 90);
  CHECK(cost(life, CostPart::network) == Approx((3 + 1) * 10 * 0.02 + 1090 * 0.02));
}

TEST_CASE("gradients that cross zones cost at every step") {
  Case c = round_case(2);
  c.plan.egress.zones = 2;
  c.plan.egress.between_zones = Fact<double>{0.02};
  c.pace.gradients_a_step = 0.5_GB;
  CHECK(cost(c.run(), CostPart::network) == Approx(1000 * 0.5 * 0.02));
  c.plan.egress.zones = 1;
  CHECK(cost(c.run(), CostPart::network) == 0);
}
