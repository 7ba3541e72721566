#include <catch2/catch.hpp>

#include "lives.h"
#include "sim/cluster/autoscaler_times.h"
#include "sim/cluster/job.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {
AutoscalerTimes default_times() {
  Plan plan;
  set_rules(plan);
  return AutoscalerTimes(plan.autoscaler);
}
SimTime at(SimDuration t) { return SimTime{t}; }
double billed(const LifeResult& life, std::size_t pool = 0) {
  return to_seconds(life.node_time[pool]).count();
}
}  // namespace

TEST_CASE("scans stand at multiples of scan_interval, the next one counts") {
  const AutoscalerTimes times = default_times();
  CHECK(times.scan_at_or_after(at(0s)) == at(0s));
  CHECK(times.scan_at_or_after(at(1ns)) == at(10s));
  CHECK(times.scan_at_or_after(at(10s)) == at(10s));
}

TEST_CASE("a node is deleted 10 min after the scan that saw it unneeded, not a scan earlier") {
  const AutoscalerTimes times = default_times();
  CHECK(times.scale_down_at(at(100s), SimTime::min()) == at(700s));
  CHECK(times.scale_down_at(at(100s + 1ns), SimTime::min()) == at(710s));
}

TEST_CASE("nothing is deleted within scale_down_delay_after_add of a scale-up") {
  const AutoscalerTimes times = default_times();
  CHECK(times.scale_down_at(at(100s), at(100s)) == at(700s));
  CHECK(times.scale_down_at(at(100s), at(110s)) == at(710s));
}

TEST_CASE("a node group backs off 5 min, doubling to 30 min") {
  const AutoscalerTimes times = default_times();
  NodeGroupBackoff backoff;
  CHECK_FALSE(backoff.blocks(at(0s)));
  backoff.failed(at(0s), times);
  CHECK(backoff.blocks(at(300s - 1ns)));
  CHECK_FALSE(backoff.blocks(at(300s)));
  SimDuration now = 300s;
  for (const SimDuration expected : {600s, 1200s, 1800s, 1800s}) {
    backoff.failed(at(now), times);
    CHECK(backoff.until() == at(now + expected));
    now += expected;
  }
  backoff.succeeded();
  CHECK_FALSE(backoff.blocks(at(now - 1ns)));
  backoff.failed(at(now), times);
  CHECK(backoff.until() == at(now + 300s));
}

TEST_CASE("nodes of one scale-up that fail together count once") {
  const AutoscalerTimes times = default_times();
  NodeGroupBackoff backoff;
  backoff.failed(at(0s), times);
  backoff.failed(at(0s), times);
  backoff.failed(at(299s), times);
  CHECK(backoff.until() == at(300s));
}

TEST_CASE("a node group's failures are forgotten after node_group_backoff_reset") {
  const AutoscalerTimes times = default_times();
  NodeGroupBackoff backoff;
  backoff.failed(at(0s), times);
  NodeGroupBackoff later = backoff;
  backoff.failed(at(3h), times);
  CHECK(backoff.until() == at(3h + 600s));
  later.failed(at(3h + 1ns), times);
  CHECK(later.until() == at(3h + 1ns + 300s));
}

TEST_CASE("pending pods get nodes at the next scan") {
  Case c = round_case(2);
  autoscale(c, 0, 0, 2);
  CHECK(finish_seconds(c.run()) == 0 + 100 + 1000);
  c.plan.jobs[0].submit = Seconds{10};
  CHECK(finish_seconds(c.run()) == 10 + 100 + 1000);
  c.plan.jobs[0].submit = Seconds{10.000000001};
  CHECK(finish_seconds(c.run()) == 20 + 100 + 1000);
}

TEST_CASE("the autoscaler adds what is missing, up to max_nodes_per_scale_up in a scan") {
  Case c = round_case(5);
  autoscale(c, 2, 0, 5);
  c.plan.autoscaler.max_nodes_per_scale_up = 2;
  // 2 nodes are under way from the start; scans at 0 and 10 add 2 and 1.
  CHECK(finish_seconds(c.run()) == 10 + 100 + 1000);
}

TEST_CASE("unneeded nodes are deleted by the rules, down to the pool's minimum") {
  Case c = round_case(1);
  autoscale(c, 2, 0, 2);
  // Both are ready at 100; the second is unneeded from there and deleted at 700. The job ends at
  // 1,100 and its node is deleted 10 min later.
  CHECK(billed(c.run()) == 700 + 1700);
  autoscale(c, 2, 1, 2);  // what the minimum kept goes with the job
  CHECK(billed(c.run()) == 700 + 1100);
  autoscale(c, 2, 2, 2);
  CHECK(billed(c.run()) == 1100 + 1100);
}

TEST_CASE("a scale-up of one pool delays scale-down in the others") {
  Case c = round_case(1);
  c.plan.pools.push_back(round_pool("servers", Role::parameter_server, 1, 0));
  c.plan.jobs[0].strategy.servers = ParameterServers{.count = 1};
  c.plan.jobs[0].submit = Seconds{300};
  autoscale(c, 2, 0, 2);
  c.plan.pools[1].autoscaling = true;
  c.plan.pools[1].nodes_initial = c.plan.pools[1].nodes_min = 0;
  // Workers' nodes are unneeded from 100. At 300 the job takes one and a server is added, ready at
  // 400; so the other worker's node may go at 900, not at 700. The job ends at 1,400; its nodes go
  // at 2,000.
  CHECK(billed(c.run(), 0) == 900 + 2000);
  CHECK(billed(c.run(), 1) == 2000 - 300);
  c.plan.autoscaler.scale_down_delay_after_add = Seconds{400};
  CHECK(billed(c.run(), 0) == 700 + 2000);
}

TEST_CASE("a node that takes exactly max_node_provision_time is still taken") {
  Case c = round_case(1);
  autoscale(c, 0, 0, 1);
  c.plan.pools[0].provisioning = Fact<Seconds>{Seconds{900}};
  CHECK(finish_seconds(c.run()) == 900 + 1000);
}

TEST_CASE(
    "a node that takes longer is given up, its group backs off, and nothing is billed for it") {
  Case c = round_case(1);
  autoscale(c, 0, 0, 1);
  c.plan.pools[0].provisioning = Fact<Seconds>{Seconds{900.000000001}};
  c.options.record = true;
  c.options.horizon = Seconds{12'000};
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(life.failure == "not finished within the horizon of 3 h 20 min");
  CHECK(life.bill == NanoUsd{});
  // Requested at 0, given up at 900, 300 s of backoff; 1,200 -> 2,100, 600 s; 2,700 -> 3,600, 1,200
  // s; 4,800 -> 5,700, 1,800 s; 7,500 -> 8,400, 1,800 s; 10,200 -> 11,100.
  std::vector<double> given_up;
  for (const Mark& mark : life.timeline.marks) {
    if (mark.name == "provision timeout")
      given_up.push_back(to_seconds(mark.at.time_since_epoch()).count());
  }
  CHECK(given_up == std::vector<double>{900, 2100, 3600, 5700, 8400, 11'100});
}

TEST_CASE("a job is tried again after 10, 20, 40 ... 360 s") {
  const RetryRules rules{.backoff_limit = 6, .base = Seconds{10}, .cap = Seconds{360}};
  const SimDuration expected[] = {10s, 20s, 40s, 80s, 160s, 320s, 360s, 360s};
  for (int k = 1; k <= 8; ++k) CHECK(retry_delay(rules, k) == expected[k - 1]);
}

TEST_CASE("disruptions take a backoff only where the rules count them") {
  Case c = round_case(1);
  reclaim_at(c, {{200s}});
  c.plan.pools[0].provisioning = Fact<Seconds>{Seconds{5}};
  CHECK(finish_seconds(c.run()) == 205 + 1000);  // a new node in 5 s
  c.plan.retry.counts_disruptions = true;
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 210 + 1000);
  CHECK(badput(life, Badput::waiting) == Approx(10));
}

TEST_CASE("one interruption more than the backoff limit ends the job") {
  Case c = round_case(1);
  reclaim_at(c, {{200s, 400s, 600s}});
  c.plan.retry.counts_disruptions = true;
  c.plan.retry.backoff_limit = 3;
  CHECK(c.run().finished);
  c.plan.retry.backoff_limit = 2;
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(life.failure == "interrupted more often than the job's backoff limit of 2 allows");
  CHECK(finish_seconds(life) == 600);
  CHECK(life.steps_done == 0);
  CHECK(goodput(life) == 0);
}

TEST_CASE("a job that its pools can never hold says so") {
  Case c = round_case(2);
  autoscale(c, 0, 0, 1);
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(life.failure ==
        "the job's 2 workers do not fit: the pools hold 1 of them at their largest");
}
