#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"
#include "sim/cluster/disruptions.h"

// On-demand nodes are the fallback of spot nodes that do not come, until the job starts again.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSpot = 0, kFallback = 1;

/// One spot node that the autoscaler asks for, and a fallback for it after 300 s.
Case with_fallback() {
  Case c = round_case(1);
  autoscale(c, 0, 0, 1);
  c.plan.pools[kSpot].pricing = CapacityType::spot;
  c.plan.pools[kSpot].patience = 300s;
  PlannedPool other = c.plan.pools[kSpot];
  other.name = "stand-in";
  other.pricing = CapacityType::on_demand;
  other.patience.reset();
  other.fallback_for = kSpot;
  c.plan.pools.push_back(other);
  return c;
}

/// A second node of the gang, spot too, that stays for `life` and comes back 100 s later.
void add_base(Case& c, Seconds life) {
  PlannedPool base = round_pool("base", Role::worker, 1, 1);
  base.pricing = CapacityType::spot;
  c.plan.pools.push_back(base);
  c.plan.jobs[0].strategy.workers = 2;
  c.pace.step_by_workers.assign(3, Seconds{1});
  c.plan.reclaim.law = TraceReclaim{};
  c.plan.reclaim.trace = {{}, {life}};  // by slot of the spot pools: the stood-in-for, the base
}

/// A base node with the chief, which is always there, and a spot node that comes at 100, is taken
/// at 600 and cannot be had again; its fallback is asked for 300 s later. Pools: base, fallback,
/// spot.
Case half_on_spot() {
  Case c = with_fallback();
  c.plan.pools.push_back(round_pool("base", Role::worker, 1, 1));
  std::swap(c.plan.pools[0], c.plan.pools[2]);
  c.plan.pools[1].fallback_for = 2;
  c.plan.jobs[0].strategy.workers = 2;
  c.pace.step_by_workers.assign(3, Seconds{1});
  c.plan.reclaim.law = TraceReclaim{};
  c.plan.reclaim.trace = {{Seconds{600}}};
  c.plan.shortage = {true, Fact<Seconds>{Seconds{2'000}}, Fact<Seconds>{Seconds{4'000}}};
  for (c.options.seed = 1; c.options.seed < 5000; ++c.options.seed) {
    Shortages shortages(c.plan.shortage, c.options.seed, 0);
    const auto at = [](double t) { return SimTime{} + to_clock(Seconds{t}); };
    if (shortages.over_at(at(0)) == at(0) && shortages.over_at(at(600)) > at(3'000)) break;
  }
  return c;
}

double node_seconds_of(const LifeResult& life, std::size_t pool) {
  return std::round(to_seconds(life.node_time[pool]).count() * 1e3) / 1e3;
}

}  // namespace

TEST_CASE("a fallback comes when the spot node has not come for the patience") {
  Case c = with_fallback();
  c.plan.pools[kSpot].provisioning = Fact<Seconds>{10'000s};
  const LifeResult life = c.run();
  // Asked for at 0, given up on at 300, the fallback ready at 400, 1,000 steps of 1 s.
  CHECK(finish_seconds(life) == 1400);
  CHECK(goodput(life) == 1000);
  CHECK(badput(life, Badput::provisioning) == 400);
  // A spot node that never came costs nothing; the other is unneeded for ten minutes.
  CHECK(node_seconds_of(life, kSpot) == 0);
  CHECK(node_seconds_of(life, kFallback) == 1400 - 300 + 600);
}

TEST_CASE("where spot nodes come in time no fallback is used") {
  const LifeResult life = with_fallback().run();
  CHECK(finish_seconds(life) == 1100);
  CHECK(node_seconds_of(life, kSpot) == 1100 + 600);
  CHECK(node_seconds_of(life, kFallback) == 0);
}

TEST_CASE("without patience of its own a pool has the autoscaler's") {
  Case c = with_fallback();
  c.plan.pools[kSpot].provisioning = Fact<Seconds>{10'000s};
  c.plan.pools[kSpot].patience.reset();
  CHECK(finish_seconds(c.run()) == 900 + 100 + 1000);
}

TEST_CASE("a job that stops while its group is in backoff takes its fallback again at once") {
  Case c = with_fallback();
  c.plan.pools[kSpot].provisioning = Fact<Seconds>{10'000s};
  add_base(c, 500s);
  // The job starts at 400, is stopped at 500 with nothing saved; the spot group is in backoff from
  // 300 to 600, the base node is back at 600: 1,000 s from there.
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 1600);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(badput(life, Badput::lost_work) == 2 * 100);
}

TEST_CASE("a job that stops later waits for the spot node first, then takes what stands there") {
  Case c = with_fallback();
  c.plan.pools[kSpot].provisioning = Fact<Seconds>{10'000s};
  add_base(c, 700s);
  // Stopped at 700, out of backoff: the spot node is asked for at 700 and given up on at 1000. The
  // fallback has been idle since 700 and is not yet gone.
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 2000);
  CHECK(node_seconds_of(life, kFallback) == 2000 - 300 + 600);
}

TEST_CASE("when the shortage is over the job goes back to spot nodes at its next start") {
  Case c = with_fallback();
  add_base(c, 30'000s);
  c.plan.shortage = {true, Fact<Seconds>{Seconds{50'000}}, Fact<Seconds>{Seconds{4'000}}};
  c.pace.steps = 40'000;
  // A seed whose shortage holds from the start for 1,000 to 5,000 s, with none until 60,000 s.
  double first = 0;
  for (c.options.seed = 1; c.options.seed < 5000; ++c.options.seed) {
    Shortages shortages(c.plan.shortage, c.options.seed, 0);
    first = to_seconds(shortages.over_at(SimTime{}) - SimTime{}).count();
    bool quiet = first > 1000 && first < 5000;
    for (double t = std::ceil(first); quiet && t < 60'000; t += 10) {
      const SimTime at = SimTime{} + to_clock(Seconds{t});
      quiet = shortages.over_at(at) == at;
    }
    if (quiet) break;
  }
  REQUIRE(c.options.seed < 5000);
  const LifeResult life = c.run();
  // The base node is given when the shortage ends, and the job starts 100 s later with the fallback
  // that has been there since 400. At 30,000 the base goes: both nodes are spot from 30,100 on.
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(finish_seconds(life) == 30'100 + 40'000);
  CHECK(badput(life, Badput::lost_work) == Approx(2 * (30'000 - first - 100)).margin(1e-3));
  CHECK(node_seconds_of(life, kFallback) == 30'000 + 600 - 300);
  CHECK(node_seconds_of(life, kSpot) == 30'100 + 40'000 + 600 - 30'000);
}

TEST_CASE("asynchronous workers go on without the spot node, and at full pace on its fallback") {
  Case c = half_on_spot();
  c.plan.jobs[0].strategy.servers = ParameterServers{.synchronous = false};
  c.pace.step_by_workers = {Seconds{0}, Seconds{2}, Seconds{1}};
  const LifeResult life = c.run();
  // From 100 to 600 both work: 500 steps. One alone until the fallback, which is asked for at 900,
  // is ready at 1000: 200 more at half the pace, and the last 300 at the whole.
  CHECK(finish_seconds(life) == 1300);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(goodput(life) == 2 * 500 + 1 * 400 + 2 * 300);
  CHECK(node_seconds_of(life, 1) == 1300 - 900 + 600);
  CHECK(node_seconds_of(life, 2) == 600);
}

TEST_CASE(
    "a gang that is half on spot stops with its spot node, and starts again on the fallback") {
  const LifeResult life = half_on_spot().run();
  // 500 s of both are lost; the base node waits from 600 until the fallback is ready at 1000.
  CHECK(finish_seconds(life) == 1000 + 1000);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(badput(life, Badput::lost_work) == 2 * 500);
  CHECK(node_seconds_of(life, 0) == 2000);
  CHECK(node_seconds_of(life, 1) == 2000 - 900 + 600);
  CHECK(node_seconds_of(life, 2) == 600);
}

TEST_CASE("no spot node is given in a shortage, and shortages last for their share of the time") {
  const ShortageRules rules{true, Fact<Seconds>{Seconds{3000}}, Fact<Seconds>{Seconds{1000}}};
  int of = 0;
  double short_time = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Shortages shortages(rules, seed, 0);
    for (double t = 0; t < 50'000; t += 100) {
      const SimTime now = SimTime{} + to_clock(Seconds{t});
      const SimTime given = shortages.over_at(now);
      REQUIRE(given >= now);
      ++of;
      short_time += given > now ? 1 : 0;
    }
  }
  // A quarter; 200 x 12.5 turns of two exponential times: a standard error of about 0.006.
  CHECK(short_time / of == Approx(0.25).margin(0.03));
}

TEST_CASE("without shortages spot nodes can always be had") {
  Shortages none({}, 1, 0);
  CHECK(none.over_at(SimTime{}) == SimTime{});
  CHECK(none.over_at(SimTime{} + to_clock(1e6s)) == SimTime{} + to_clock(1e6s));
}
