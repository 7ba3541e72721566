#include <catch2/catch.hpp>

#include "lives.h"
#include "sim/cluster/life/life.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {
/// Three workers and a server; 1 s a step with all workers, 1.5 s with two, 3 s with one; 20 s to
/// start.
Case asynchronous_case() {
  Case c = round_case(3);
  c.plan.pools.push_back(round_pool("servers", Role::parameter_server, 1, 0));
  PlannedStrategy& strategy = c.plan.jobs[0].strategy;
  strategy.kind = StrategyKind::parameter_server;
  strategy.servers = ParameterServers{.count = 1, .synchronous = false};
  c.pace.step_by_workers = {0s, 3s, 1.5s, 1s};
  c.plan.job_start.framework_start = Fact<Seconds>{20s};
  return c;
}
}  // namespace

TEST_CASE("asynchronous training goes on with the workers that are left") {
  Case c = asynchronous_case();
  reclaim_at(c, {{}, {}, {400s}});
  const LifeResult life = c.run();
  // From 120 to 400: 280 steps. The worker is back at 500 and has started at 520: 120 s at 1.5 s a
  // step are 80 steps. The other 640 take until 1,160.
  CHECK(finish_seconds(life) == 1160);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(badput(life, Badput::provisioning) == Approx(3 * 100 + 100));
  CHECK(badput(life, Badput::initialization) == Approx(3 * 20 + 20));
  CHECK(goodput(life) == Approx(3 * 280 + 2 * 120 + 3 * 640));
}

TEST_CASE("a lost chief interrupts asynchronous training") {
  Case c = asynchronous_case();
  reclaim_at(c, {{400s}});
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 520 + 1000);  // no checkpoints: all over again
  CHECK(badput(life, Badput::lost_work) == Approx(3 * 280));
}

TEST_CASE("a lost parameter server interrupts asynchronous training") {
  Case c = asynchronous_case();
  reclaim_at(c, {{400s}});
  c.plan.pools[0].pricing = CapacityType::on_demand;
  c.plan.pools[1].pricing = CapacityType::spot;
  CHECK(badput(c.run(), Badput::lost_work) == Approx(3 * 280));
}

TEST_CASE("a server under notice makes a checkpoint first") {
  Case c = asynchronous_case();
  reclaim_at(c, {{400s}}, 30s);
  c.plan.pools[0].pricing = CapacityType::on_demand;
  c.plan.pools[1].pricing = CapacityType::spot;
  checkpoints(c, 5000s, 10s, 5s);
  const LifeResult life = c.run();
  // Notice at 370 with 250 steps done; saved at 380. The server goes at 400 and is back at 500: 20
  // s to start, 5 s to restore, 750 steps.
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(finish_seconds(life) == 525 + 750);
}

TEST_CASE("evaluators are paid for from the start, and training goes on without one") {
  Case c = round_case(2);
  c.plan.pools.push_back(round_pool("evaluators", Role::evaluator, 1, 1));
  const LifeResult undisturbed = c.run();
  c.plan.pools[1].pricing = CapacityType::spot;
  c.plan.reclaim.law = TraceReclaim{};
  c.plan.reclaim.trace = {{400s}};
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == finish_seconds(undisturbed));
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(count(life, Interruption::preemption) == 1);
  // Synchronous training with two workers: only they interrupt it.
  CHECK(mean_time_to_interruption(c.plan, c.plan.jobs[0]) == Seconds::max());
}

TEST_CASE("with no worker left asynchronous training stands still and loses nothing") {
  Case c = asynchronous_case();
  c.plan.jobs[0].strategy.workers = 2;
  c.plan.pools[0] = round_pool("chief", Role::chief, 1, 0);  // coordinates, trains nothing
  c.plan.pools.push_back(round_pool("workers", Role::worker, 2, 1));
  c.pace.step_by_workers = {0s, 2s, 1s};
  c.plan.pools[2].pricing = CapacityType::spot;
  c.plan.reclaim.law = TraceReclaim{};
  c.plan.reclaim.trace = {{400s}, {400s}};
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(finish_seconds(life) == 520 + 720);
}

TEST_CASE("a worker lost before it has joined starts again on the next node") {
  Case c = asynchronous_case();
  reclaim_at(
      c, {{}, {}, {400s, 510s}});  // ready again at 500, gone at 510, ready at 610, joined at 630
  const LifeResult life = c.run();
  // 280 steps to 400, (630 - 400) / 1.5 to 630.
  CHECK(finish_seconds(life) == Approx(630 + 1000 - 280 - 230 / 1.5));
  CHECK(badput(life, Badput::initialization) == Approx(3 * 20 + 10 + 20));
}
