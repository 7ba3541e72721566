#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"
#include "sim/cluster/disruptions.h"

// GKE's node auto-provisioning and custom ComputeClasses [cloud.google.com/kubernetes-engine/docs,
// "About node pool auto-creation", "About custom ComputeClasses"].
using namespace reckon;
using namespace reckon::test;

namespace {

Case with_auto_provisioning(int nodes = 1) {
  Case c = round_case(nodes);
  autoscale(c, 0, 0, nodes);
  c.plan.node_auto_provisioning.emplace().compute_class.emplace();
  return c;
}

ComputeClassSpec& compute_class(Case& c) { return *c.plan.node_auto_provisioning->compute_class; }

/// A pool of the rule of that rank, at so much of the price.
PlannedPool& add_provisioned_choice(Case& c, int rank, CapacityType pricing, double price) {
  PlannedPool other = c.plan.pools[0];
  other.name = "rule-" + std::to_string(c.plan.pools.size());
  other.machine.name = other.name;
  other.rank = rank;
  other.pricing = pricing;
  other.price.machine = scaled(other.price.machine, price);
  other.price.accelerators = scaled(other.price.accelerators, price);
  other.fallback_for = 0;
  c.plan.pools.push_back(other);
  return c.plan.pools.back();
}

/// The pods' own pool is on spot; a seed whose shortage of it ends between `from` and `to`, with
/// none for a day after.
double unprovisioned_at_first(Case& c, double from, double to) {
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.shortage = {true, Fact<Seconds>{Seconds{2e5}}, Fact<Seconds>{Seconds{400}}};
  for (c.options.seed = 1; c.options.seed < 20'000; ++c.options.seed) {
    Shortages all(c.plan.shortage, c.options.seed, 0);
    const double end = to_seconds(all.over_at(SimTime{}) - SimTime{}).count();
    const SimTime day = SimTime{} + to_clock(Seconds{86'400});
    if (end > from && end < to && all.over_at(day) == day) return end;
  }
  FAIL("no such seed");
  return 0;
}

double provisioned_seconds(const LifeResult& life, std::size_t pool) {
  return std::round(to_seconds(life.node_time[pool]).count() * 1e3) / 1e3;
}

}  // namespace

TEST_CASE("the rules count in their order, the price only among the machines of one") {
  Case c = with_auto_provisioning(2);
  add_provisioned_choice(c, 1, CapacityType::on_demand, 0.1);
  add_provisioned_choice(c, 0, CapacityType::on_demand, 0.9);
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 0 + 100 + 1000);
  CHECK(provisioned_seconds(life, 2) == 2 * 1700);
  CHECK(provisioned_seconds(life, 0) == 0);
}

TEST_CASE("a rule without capacity is passed over at once and backs off") {
  Case c = with_auto_provisioning(2);
  unprovisioned_at_first(c, 700, 1100);
  add_provisioned_choice(c, 1, CapacityType::on_demand, 3);
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 0 + 100 + 1000);  // where a node group waits for 15 min
  CHECK(provisioned_seconds(life, 0) == 0);
  CHECK(provisioned_seconds(life, 1) == 2 * 1700);
}

TEST_CASE("pods wait while no rule can be met, as DoNotScaleUp has it") {
  Case c = with_auto_provisioning();
  const double end = unprovisioned_at_first(c, 310, 880);
  // Refused at 0, and at 300 behind 5 min of backoff; then behind 10 min.
  REQUIRE(end > 300);
  CHECK(finish_seconds(c.run()) == 900 + 100 + 1000);
}

TEST_CASE("a node pool is made before its first node, and is there for the next") {
  Case c = with_auto_provisioning();
  c.plan.pools[0].pool_creation = Fact<Seconds>{Seconds{60}};
  CHECK(finish_seconds(c.run()) == 60 + 100 + 1000);
  autoscale(c, 0, 0, 2);
  c.plan.jobs.push_back(c.plan.jobs[0]);
  c.plan.jobs[1].submit = Seconds{500};
  const std::vector<JobPace> paces(2, c.pace);
  const LifeResult life = simulate_life(c.plan, requests_of(c.plan, paces), c.options);
  CHECK(to_seconds(life.jobs[1].finish - SimTime{}).count() == 500 + 100 + 1000);
}

TEST_CASE("a pool that would have to be made needs to cost less than half") {
  Case c = with_auto_provisioning();
  c.plan.pools[0].pool_creation = Fact<Seconds>{Seconds{60}};
  add_provisioned_choice(c, 0, CapacityType::on_demand, 0.6);
  add_provisioned_choice(c, 0, CapacityType::on_demand, 0.6)
      .pool_creation = {};  // stands for one that exists
  CHECK(provisioned_seconds(c.run(), 2) > 0);
  Case less = with_auto_provisioning();
  less.plan.pools[0].pool_creation = Fact<Seconds>{Seconds{60}};
  add_provisioned_choice(less, 0, CapacityType::on_demand, 0.4);
  add_provisioned_choice(less, 0, CapacityType::on_demand, 0.9).pool_creation = {};
  CHECK(provisioned_seconds(less.run(), 1) > 0);
}

TEST_CASE("limits of the cluster count the nodes of all pools") {
  Case c = with_auto_provisioning(3);
  c.plan.node_auto_provisioning->resource_limits = {{"cpu", 3 * 16}};
  CHECK(c.run().finished);
  c.options.horizon = Seconds{5000};
  for (const ResourceLimit& limit : {ResourceLimit{"cpu", 3 * 16 - 1}, ResourceLimit{"memory", 191},
                                     ResourceLimit{"Round-16", 2}}) {
    INFO(limit.resource_type);
    c.plan.node_auto_provisioning->resource_limits = {limit};
    const LifeResult life = c.run();
    CHECK_FALSE(life.finished);
    CHECK(provisioned_seconds(life, 0) == 2 * 5000);
  }
  // A machine of another rule with fewer of what is short.
  PlannedPool& lean = add_provisioned_choice(c, 1, CapacityType::on_demand, 1);
  lean.machine.memory = Fact<Bytes>{Bytes{60e9}};
  c.plan.node_auto_provisioning->resource_limits = {{"memory", 190}};
  const LifeResult life = c.run();
  CHECK(life.finished);
  CHECK(finish_seconds(life) == 10 + 100 + 1000);
  CHECK(provisioned_seconds(life, 1) > 0);
}

TEST_CASE("consolidationDelayMinutes is how long a node without pods stays") {
  Case c = with_auto_provisioning();
  compute_class(c).consolidation_delay = Seconds{120};
  c.plan.autoscaler.scale_down_delay_after_add = Seconds{0};
  CHECK(provisioned_seconds(c.run(), 0) == 1100 + 120);
}

TEST_CASE("active migration moves a job to the preferred rule, if its pods may be evicted") {
  Case c = with_auto_provisioning();
  const double end = unprovisioned_at_first(c, 320, 580);
  add_provisioned_choice(c, 1, CapacityType::on_demand, 3);
  compute_class(c).optimize_rule_priority = true;
  CHECK(finish_seconds(c.run()) == 1100);  // safe-to-evict: "false"
  c.plan.node_auto_provisioning->safe_to_evict = true;
  // Refused at 0, the rule backs off to 300; the node is asked for at the first scan with
  // capacity, ready 100 s later, and the job starts again from there.
  const double asked = std::ceil(end / 10) * 10;
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == asked + 100 + 1000);
  CHECK(provisioned_seconds(life, 1) == asked + 100);
  CHECK(count(life, Interruption::maintenance) == 1);
  checkpoints(c, Seconds{50}, Seconds{0});
  CHECK(finish_seconds(c.run()) <= 1100 + 50);
}
