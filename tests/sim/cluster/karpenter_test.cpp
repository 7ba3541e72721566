#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"
#include "sim/cluster/autoscaler.h"
#include "sim/cluster/disruptions.h"

// Karpenter's rules [karpenter.sh, "NodePools", "Disruption", "Settings"], each on a cluster of
// round numbers: nodes are ready 100 s after the request, the job runs 1,000 s, and an empty node
// goes at the first look of the disruption loop (each 10 s) and 15 s of validation later.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

/// One NodePool, and a pool for its first choice: pods of `nodes` nodes that Karpenter makes.
Case with_karpenter(int nodes = 1) {
  Case c = round_case(nodes);
  autoscale(c, 0, 0, nodes);
  c.plan.pools[0].node_pool = 0;
  c.plan.karpenter.emplace();
  c.plan.karpenter->node_pools.push_back({.name = "default", .expire_after = std::nullopt});
  return c;
}

NodePoolSpec& node_pool(Case& c, std::size_t k = 0) { return c.plan.karpenter->node_pools[k]; }

/// Another machine or capacity type for the same pods, at so much of the price.
std::size_t add_choice(Case& c, const std::string& machine, CapacityType pricing, double price,
                       std::size_t node_pool = 0) {
  PlannedPool other = c.plan.pools[0];
  other.name = "workers-" + machine + "-" + std::string(to_text(pricing));
  other.machine.name = machine;
  other.pricing = pricing;
  other.price.machine = scaled(other.price.machine, price);
  other.price.accelerators = scaled(other.price.accelerators, price);
  other.node_pool = node_pool;
  other.fallback_for = 0;
  c.plan.pools.push_back(other);
  return c.plan.pools.size() - 1;
}

double karpenter_node_seconds(const LifeResult& life, std::size_t pool) {
  return std::round(to_seconds(life.node_time[pool]).count() * 1e3) / 1e3;
}

/// A seed whose spot shortage of a market holds from 0 to `from`..`to`, with none for a day after.
void short_at_first(Case& c, double from, double to) {
  c.plan.shortage = {true, Fact<Seconds>{Seconds{2e5}}, Fact<Seconds>{Seconds{400}}};
  for (c.options.seed = 1; c.options.seed < 20'000; ++c.options.seed) {
    Shortages all(c.plan.shortage, c.options.seed, 0);
    const double end = to_seconds(all.over_at(SimTime{}) - SimTime{}).count();
    const SimTime day = SimTime{} + to_clock(Seconds{86'400});
    if (end > from && end < to && all.over_at(day) == day) return;
  }
  FAIL("no such seed");
}

double first_capacity(const Case& c) {
  Shortages all(c.plan.shortage, c.options.seed, 0);
  return to_seconds(all.over_at(SimTime{}) - SimTime{}).count();
}

}  // namespace

TEST_CASE("pending pods get nodes a second after the last of them") {
  Case c = with_karpenter(2);
  CHECK(finish_seconds(c.run()) == 1 + 100 + 1000);
  c.plan.jobs[0].submit = Seconds{10};  // where the cluster-autoscaler waits for a scan
  CHECK(finish_seconds(c.run()) == 10 + 1 + 100 + 1000);
  c.plan.karpenter->batch_idle = 3s;
  CHECK(finish_seconds(c.run()) == 10 + 3 + 100 + 1000);
  c.plan.karpenter->batch_max = 2s;
  CHECK(finish_seconds(c.run()) == 10 + 2 + 100 + 1000);
}

TEST_CASE("pods that come within the idle time join the batch until it is batch_max old") {
  Case c = with_karpenter(1);
  autoscale(c, 0, 0, 12);
  c.plan.karpenter->batch_idle = 2s;
  PlannedWorkload job = c.plan.jobs[0];
  c.plan.jobs.clear();
  for (int k = 0; k < 12; ++k) {
    job.submit = Seconds{1.0 * k};
    c.plan.jobs.push_back(job);
  }
  const std::vector<JobPace> paces(12, c.pace);
  const LifeResult life = simulate_life(c.plan, requests_of(c.plan, paces), c.options);
  // Pods come each second from 0 to 11. The first batch ends at 10 with those of 0 to 10, as the
  // idle time never passes; the pod of 11 begins another, which ends at 13.
  for (int k = 0; k <= 10; ++k) {
    INFO(k);
    CHECK(to_seconds(life.jobs[std::size_t(k)].finish - SimTime{}).count() == 10 + 100 + 1000);
  }
  CHECK(to_seconds(life.jobs[11].finish - SimTime{}).count() == 13 + 100 + 1000);
}

TEST_CASE("an empty node goes consolidateAfter later, at a look and its validation") {
  Case c = with_karpenter();
  // Ready at 101, free at 1,101; the next look is at 1,110, the deletion at 1,125.
  CHECK(karpenter_node_seconds(c.run(), 0) == 1125 - 1);
  node_pool(c).consolidate_after = 300s;
  CHECK(karpenter_node_seconds(c.run(), 0) == 1410 + 15 - 1);
  node_pool(c).consolidation_policy = ConsolidationPolicy::WhenEmpty;
  CHECK(karpenter_node_seconds(c.run(), 0) == 1410 + 15 - 1);
  node_pool(c).consolidate_after.reset();  // Never: it ends with the last job
  CHECK(karpenter_node_seconds(c.run(), 0) == 1100);
}

TEST_CASE("without a budget given a tenth of the nodes goes at a time, rounded up") {
  Case c = with_karpenter(4);
  // 1,101 is the end; the looks take one node each, at 1,125, 1,135, 1,145 and 1,155.
  CHECK(karpenter_node_seconds(c.run(), 0) == (1125 + 1135 + 1145 + 1155) - 4);
  node_pool(c).budgets = {{.share = 1.0}};
  CHECK(karpenter_node_seconds(c.run(), 0) == 4 * (1125 - 1));
  node_pool(c).budgets = {{.nodes = 2}};
  CHECK(karpenter_node_seconds(c.run(), 0) == 2 * 1125 + 2 * 1135 - 4);
  node_pool(c).budgets = {{.nodes = 0}};  // they end with the last job
  CHECK(karpenter_node_seconds(c.run(), 0) == 4 * 1124);
}

TEST_CASE("the cheapest type comes first, spot before on demand, the higher weight before both") {
  Case c = with_karpenter();
  const std::size_t cheap = add_choice(c, "small", CapacityType::on_demand, 0.5);
  const auto used = [&] {
    const LifeResult life = c.run();
    std::vector<std::size_t> pools;
    for (std::size_t p = 0; p < life.node_time.size(); ++p)
      if (karpenter_node_seconds(life, p) > 0) pools.push_back(p);
    return pools;
  };
  CHECK(used() == std::vector{cheap});
  const std::size_t spot = add_choice(c, "large", CapacityType::spot, 0.9);
  CHECK(used() == std::vector{spot});
  c.plan.karpenter->node_pools.push_back({.name = "first", .weight = 10});
  const std::size_t heavy = add_choice(c, "huge", CapacityType::on_demand, 3, 1);
  CHECK(used() == std::vector{heavy});
}

TEST_CASE("limits send the other nodes to the next NodePool, or make pods wait") {
  Case c = with_karpenter(3);
  node_pool(c).limits.cpu = 2 * 16;
  c.plan.karpenter->node_pools.push_back({.name = "second", .expire_after = std::nullopt});
  const std::size_t other = add_choice(c, "other", CapacityType::on_demand, 1, 1);
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 1101);
  CHECK(karpenter_node_seconds(life, other) == 1124);
  for (const auto set :
       {+[](NodePoolLimits& l) { l.nodes = 2; }, +[](NodePoolLimits& l) { l.gpus = 2; },
        +[](NodePoolLimits& l) { l.memory = Bytes{130e9}; }}) {
    Case d = c;
    d.plan.karpenter->node_pools[0].limits = {};
    set(d.plan.karpenter->node_pools[0].limits);
    CHECK(karpenter_node_seconds(d.run(), other) == 1124);
  }
  c.plan.pools.pop_back();
  c.plan.karpenter->node_pools.pop_back();
  c.options.horizon = 1h;
  CHECK_FALSE(c.run().finished);
}

TEST_CASE("where spot has no capacity the next offering is taken at once, and spot again later") {
  Case c = with_karpenter();
  const std::size_t spot = add_choice(c, c.plan.pools[0].machine.name, CapacityType::spot, 0.3);
  short_at_first(c, 1000, 3000);
  // The cluster-autoscaler waits 15 min for such a node before it turns to its fallback.
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 1101);
  CHECK(karpenter_node_seconds(life, spot) == 0);
  // Spot alone: asked for again every 3 min.
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.pools.pop_back();
  const double waits = std::ceil((first_capacity(c) - 1) / 180) * 180 + 1;
  CHECK(finish_seconds(c.run()) == waits + 100 + 1000);
}

TEST_CASE("each machine type has a spot market of its own") {
  Case c = with_karpenter();
  c.plan.pools[0].pricing = CapacityType::spot;
  short_at_first(c, 1000, 3000);
  const std::size_t other = add_choice(c, "other", CapacityType::spot, 1.2);
  Shortages market(c.plan.shortage, c.options.seed, 0, node_entity("other", 0));
  REQUIRE(market.over_at(SimTime{}) == SimTime{});  // seldom short: 400 s of 200,000
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 1101);
  CHECK(karpenter_node_seconds(life, other) == 1124);
}

TEST_CASE("a node that has not registered after 15 min is given up and asked for anew") {
  Case c = with_karpenter();
  c.plan.pools[0].provisioning = Fact<Seconds>{10'000s};
  c.options.horizon = 2000s;
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(karpenter_node_seconds(life, 0) == 0);
}

TEST_CASE(
    "do-not-disrupt keeps a job on dear nodes, without it Karpenter moves it to cheaper ones") {
  Case c = with_karpenter();
  const std::size_t spot = add_choice(c, c.plan.pools[0].machine.name, CapacityType::spot, 0.3);
  short_at_first(c, 200, 370);
  checkpoints(c, Seconds{100}, Seconds{1});
  const LifeResult kept = c.run();
  CHECK(karpenter_node_seconds(kept, spot) == 0);
  CHECK(finish_seconds(kept) == 1 + 100 + 1000 + 9);

  c.plan.karpenter->do_not_disrupt = false;
  const LifeResult moved = c.run();
  CHECK(count(moved, Interruption::maintenance) == 1);
  // The look after the shortage's end, 15 s of validation, 100 s until the replacement is ready:
  // then the pods are evicted, the save takes no longer than the notice of none.
  const double ready = std::ceil(first_capacity(c) / 10) * 10 + 15 + 100;
  CHECK(karpenter_node_seconds(moved, 0) == ready - 1);
  CHECK(karpenter_node_seconds(moved, spot) > 0);
  CHECK(badput(moved, Badput::lost_work) > 0);
  CHECK(finish_seconds(moved) > finish_seconds(kept));
  // WhenEmpty leaves nodes with pods alone, and so does a budget of none.
  Case empty = c;
  node_pool(empty).consolidation_policy = ConsolidationPolicy::WhenEmpty;
  CHECK(karpenter_node_seconds(empty.run(), spot) == 0);
  node_pool(c).budgets = {{.nodes = 0, .reasons = {DisruptionReason::Underutilized}}};
  CHECK(karpenter_node_seconds(c.run(), spot) == 0);
}

TEST_CASE("a drained job saves first where the grace period is long enough") {
  Case c = with_karpenter();
  add_choice(c, c.plan.pools[0].machine.name, CapacityType::spot, 0.3);
  short_at_first(c, 200, 370);
  checkpoints(c, Seconds{100}, Seconds{1});
  c.plan.karpenter->do_not_disrupt = false;
  c.plan.reclaim.notice = 120s;
  const LifeResult life = c.run();
  CHECK(count(life, Interruption::maintenance) == 1);
  CHECK(badput(life, Badput::lost_work) == 0);
}

TEST_CASE("spot nodes are replaced by spot nodes under the gate, with 15 cheaper types") {
  Case c = with_karpenter();
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.karpenter->do_not_disrupt = false;
  // 14 cheaper types, none of which has capacity when the job comes, and one that costs more.
  for (int k = 0; k < 14; ++k)
    add_choice(c, "cheaper-" + std::to_string(k), CapacityType::spot, 0.5 + 0.01 * k);
  add_choice(c, "dearer", CapacityType::spot, 2);
  c.plan.karpenter->node_pools.push_back({.name = "low", .weight = 0});
  node_pool(c, 0).weight = 5;
  // The cheaper types are of a NodePool that comes second, so the job begins on the dear one.
  for (std::size_t p = 1; p < c.plan.pools.size(); ++p) c.plan.pools[p].node_pool = 1;
  const auto moves = [&] { return count(c.run(), Interruption::maintenance); };
  c.plan.karpenter->spot_to_spot_consolidation = true;
  CHECK(moves() == 0);
  add_choice(c, "cheaper-14", CapacityType::spot, 0.9, 1);
  CHECK(moves() == 1);
  c.plan.karpenter->spot_to_spot_consolidation = false;
  CHECK(moves() == 0);
}

TEST_CASE("with the interruption queue the replacement starts at the notice") {
  Case c = with_karpenter();
  c.plan.karpenter->do_not_disrupt = false;
  c.plan.karpenter->interruption_queue = true;
  reclaim_at(c, {{Seconds{601}}, {}}, 120s);
  checkpoints(c, Seconds{1000}, Seconds{60});
  // The notice comes at 481 after 380 s of work; the save takes until 541. The replacement is asked
  // for at 482 and ready at 582; 620 s are left.
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 582 + 620);
  CHECK(badput(life, Badput::checkpoint_save) == 60);
  // Without the queue the pods are pending from 541 on.
  c.plan.karpenter->interruption_queue = false;
  CHECK(finish_seconds(c.run()) == 542 + 100 + 620);
  // Protected pods are not evicted, and nothing is made for them before they have gone.
  c.plan.karpenter->interruption_queue = true;
  c.plan.karpenter->do_not_disrupt = true;
  CHECK(finish_seconds(c.run()) == 542 + 100 + 620);
}

TEST_CASE("a node is drained when it is as old as expireAfter") {
  Case c = with_karpenter();
  node_pool(c).expire_after = 600s;
  checkpoints(c, Seconds{100}, Seconds{1});
  // Protected pods stay: the node is of 1 to 1,110, and goes at once when the job has.
  const LifeResult kept = c.run();
  CHECK(finish_seconds(kept) == 1 + 100 + 1009);
  CHECK(karpenter_node_seconds(kept, 0) == 100 + 1009);
  // Evictable ones lose what was not saved: at 601 after 4 saves and 96 s of the fifth interval.
  // The next node is of 602, runs from 702 on, and is as old at 1,202: the same once more.
  c.plan.karpenter->do_not_disrupt = false;
  const LifeResult drained = c.run();
  CHECK(count(drained, Interruption::maintenance) == 2);
  CHECK(badput(drained, Badput::lost_work) == 2 * 96);
  // With a terminationGracePeriod protected pods have that long.
  c.plan.karpenter->do_not_disrupt = true;
  node_pool(c).termination_grace_period = 300s;
  const LifeResult forced = c.run();
  CHECK(count(forced, Interruption::maintenance) == 1);
  CHECK(badput(forced, Badput::lost_work) == (901 - 101) % 101);
}

TEST_CASE("reserved machines come first, while the reservation lasts") {
  Case c = with_karpenter(3);
  const std::size_t held = add_choice(c, c.plan.pools[0].machine.name, CapacityType::reserved, 1);
  c.plan.pools[held].reservation = PlannedReservation{.nodes = 2, .price = HourlyRate{1}};
  const LifeResult life = c.run();
  CHECK(karpenter_node_seconds(life, 0) == 1124);
  CHECK(karpenter_node_seconds(life, held) == 1134 + 1144);  // the budget: one at a time
  c.plan.pools[held].reservation->until = Seconds{0.5};
  CHECK(karpenter_node_seconds(c.run(), held) == 0);
}

TEST_CASE("two jobs share what Karpenter makes, and the ledgers add up") {
  Case c = with_karpenter();
  autoscale(c, 0, 0, 2);
  add_choice(c, "other", CapacityType::spot, 0.4);
  c.plan.reclaim.law = ExponentialReclaim{400s};
  c.plan.reclaim.notice = 30s;
  c.plan.karpenter->do_not_disrupt = false;
  c.plan.karpenter->interruption_queue = true;
  c.plan.shortage = {true, Fact<Seconds>{Seconds{600}}, Fact<Seconds>{Seconds{300}}};
  checkpoints(c, Seconds{50}, Seconds{2});
  PlannedWorkload second = c.plan.jobs[0];
  second.submit = Seconds{77};
  c.plan.jobs.push_back(second);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    c.options.seed = seed;
    const std::vector<JobPace> paces(2, c.pace);
    const LifeResult life = simulate_life(c.plan, requests_of(c.plan, paces), c.options);
    INFO(seed);
    CHECK(life.finished);
    Int128 badput_sum = life.goodput.n;
    for (const AcceleratorTime& t : life.badput) badput_sum += t.n;
    CHECK(badput_sum == life.total.n);
    const LifeResult again = simulate_life(c.plan, requests_of(c.plan, paces), c.options);
    CHECK(again.digest == life.digest);
  }
}
