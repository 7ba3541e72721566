#include <catch2/catch.hpp>

#include "lives.h"
#include "sim/cluster/billing.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

TEST_CASE("time is billed in whole units, and at least the minimum") {
  BillingRules rules;
  rules.granularity = 60s;
  rules.minimum = 10min;
  CHECK(billed_time(rules, 1s, false) == 10min);
  CHECK(billed_time(rules, 10min, false) == 10min);
  CHECK(billed_time(rules, 10min + 1ns, false) == 11min);
}

TEST_CASE("a node that is reclaimed within the first minute is free") {
  BillingRules rules;
  rules.granularity = 1s;
  rules.free_if_reclaimed_within = 60s;
  CHECK(billed_time(rules, 60s - 1ns, true) == 0s);
  CHECK(billed_time(rules, 60s, true) == 60s);
  CHECK(billed_time(rules, 59s, false) == 59s);
}

TEST_CASE(
    "machine and accelerators are charged for the time that the job ran on the node, the rest is "
    "idle") {
  Case c = round_case(1);
  const LifeResult life = c.run();  // 1,100 s at 1.20 + 2.40 USD/h, 1,000 s of them training
  CHECK(life.bill == to_nano_usd(Usd{1.10}));
  CHECK(cost(life, CostPart::machines) == Approx(1.2 * 1000 / 3600));
  CHECK(cost(life, CostPart::accelerators) == Approx(2.4 * 1000 / 3600));
  CHECK(cost(life, CostPart::idle) == Approx(3.6 * 100 / 3600));
  CHECK(to_seconds(life.node_time[0]).count() == 1100);
}

TEST_CASE("a node that the job does not use is idle") {
  Case c = round_case(1);
  c.plan.pools[0].nodes_initial = 2;
  CHECK(cost(c.run(), CostPart::idle) == Approx(3.6 * (100 + 1100) / 3600));
}

TEST_CASE("the cluster's fee runs from its creation to its last node's end") {
  Case c = round_case(1);
  c.plan.billing.management = HourlyRate{100'000'000};
  autoscale(c, 1, 0, 1);
  CHECK(cost(c.run(), CostPart::management) == Approx(0.1 * 1700 / 3600));
}

TEST_CASE("checkpoints are stored from submit to finish") {
  Case c = round_case(1);
  c.plan.storage_per_gb = HourlyRate{36'000'000};
  c.pace.checkpoint_size = 10.0_GB;
  CHECK(cost(c.run(), CostPart::storage) == 0);  // none are made
  checkpoints(c, 5000s, 10s);
  CHECK(cost(c.run(), CostPart::storage) == Approx(0.036 * 10 * 1100 / 3600));
}

TEST_CASE("a cluster's nodes wait for the job from the start, a job service's are made for it") {
  Case c = round_case(1);
  c.plan.jobs[0].submit = Seconds{500};
  CHECK(to_seconds(c.run().node_time[0]).count() == 1500);
  c.plan.service.nodes_of_job = true;
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 500 + 100 + 1000);
  CHECK(to_seconds(life.node_time[0]).count() == 1100);
}

TEST_CASE("a reserved node is billed at the reservation's price until its end, then at its own") {
  const NodePrice price{true, {1'200'000'000}, {2'400'000'000}, "", ""};
  BillingRules rules;
  rules.granularity = 1s;
  PlannedReservation reserved;
  reserved.nodes = 1;
  reserved.price = {1'800'000'000};
  const Lease lease{10h, 0s, 5h, false};
  // All ten hours in the term: 10 x 1.80, half of it busy.
  const LeaseCharge all = charge_lease(price, rules, lease, &reserved);
  CHECK(all.total() == to_nano_usd(Usd{18.0}));
  CHECK(all.machines == to_nano_usd(Usd{9.0}));
  CHECK(all.accelerators == NanoUsd{0});
  // Four hours in the term, six after it: 4 x 1.80 + 6 x 3.60; of the busy hours 2 and 3.
  const LeaseCharge part = charge_lease(price, rules, lease, &reserved, 4h);
  CHECK(part.total() == to_nano_usd(Usd{28.8}));
  CHECK(part.machines == to_nano_usd(Usd{2 * 1.8 + 3 * 1.2}));
  CHECK(part.accelerators == to_nano_usd(Usd{3 * 2.4}));
  // Over before it began.
  CHECK(charge_lease(price, rules, lease, &reserved, -1h).total() == to_nano_usd(Usd{36.0}));
  CHECK(charge_lease(price, rules, lease).total() == to_nano_usd(Usd{36.0}));
}

TEST_CASE("as many nodes as are reserved are billed at the reservation's price") {
  Case c = round_case(1);  // 1,100 s a node at 1.20 + 2.40 USD/h
  c.plan.pools[0].reservation = PlannedReservation{1, {1'800'000'000}, std::nullopt};
  CHECK(c.run().bill == to_nano_usd(Usd{0.55}));  // 1,100 s x 1.80 USD/h
  c.plan.pools[0].reservation->nodes = 0;
  CHECK(c.run().bill == to_nano_usd(Usd{1.10}));
  // The term ends after 500 s: 500 s x 1.80 + 600 s x 3.60 USD/h.
  c.plan.pools[0].reservation = PlannedReservation{1, {1'800'000'000}, Seconds{500}};
  CHECK(c.run().bill == to_nano_usd(Usd{0.25 + 0.60}));
}

TEST_CASE("a reservation that is paid whole costs its term, and its unused time is idle") {
  Case c = round_case(1);  // 1,100 s on one node
  c.plan.pools[0].reservation = PlannedReservation{
      .nodes = 1, .price = {1'800'000'000}, .until = Seconds{7200}, .whole = true};
  const LifeResult used = c.run();
  CHECK(used.bill == to_nano_usd(Usd{3.6}));  // 2 h x 1.80 USD/h, however long the run is
  c.plan.pools[0].reservation->whole = false;
  const LifeResult part = c.run();
  CHECK(part.bill == to_nano_usd(Usd{0.55}));
  CHECK(used.cost[std::size_t(CostPart::idle)] - part.cost[std::size_t(CostPart::idle)] ==
        to_nano_usd(Usd{3.05}));
}

TEST_CASE("nodes of a reservation are not there before its first day, and the job waits") {
  Case c = round_case(1);
  const LifeResult now = c.run();
  c.plan.pools[0].reservation =
      PlannedReservation{.nodes = 1, .price = {1'800'000'000}, .from = Seconds{86400}};
  const LifeResult later = c.run();
  REQUIRE(later.finished);
  CHECK(to_seconds(later.finish - now.finish).count() == Approx(86400));
  CHECK(later.bill == to_nano_usd(Usd{0.55}));  // what is waited for is not billed
}
