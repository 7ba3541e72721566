#include <catch2/catch.hpp>
#include <numeric>

#include "lives.h"
#include "sim/cluster/restart.h"
#include "sim/scenario/restart.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

/// Four nodes of one accelerator, data-parallel, of which node 0 is reclaimed at `when` without a
/// notice and comes back 100 s later. A start takes 40 s, of a node without the image 70 s more.
Case losing(RestartKind kind, Seconds when = 500s) {
  Case c = round_case(4);
  reclaim_at(c, {{when}, {}, {}, {}});
  c.plan.reclaim.trace_length = Seconds{1e9};
  c.plan.job_start.image_pull = Fact<Seconds>{70s};
  c.plan.job_start.framework_start = Fact<Seconds>{40s};
  c.plan.job_start.compile = Fact<Seconds>{0s};
  checkpoints(c, 200s, 0s, 30s);
  c.plan.jobs[0].checkpoint.notice.policy = OnNotice::none;
  if (kind == RestartKind::full) return c;
  PlannedRestart restart;
  restart.kind = kind;
  restart.regroup = Fact<Seconds>{5s};
  c.plan.jobs[0].restart = restart;
  c.pace.peer_restore = 3s;
  return c;
}

/// With fewer workers it is as much slower; at least two.
Case elastic(Seconds when = 500s) {
  Case c = losing(RestartKind::elastic, when);
  c.plan.jobs[0].restart->min_workers = 2;
  for (int live = 2; live <= 4; ++live)
    c.pace.step_by_workers[std::size_t(live)] = Seconds{4.0 / live};
  return c;
}

/// ZeRO shards the state over all ranks: a lost node takes a part with it.
void shard(Case& c) {
  c.plan.jobs[0].strategy.kind = StrategyKind::sharded;
  c.plan.jobs[0].strategy.layout.zero_stage = 3;
}

double sum_of_parts(const LifeResult& life) {
  Int128 sum = life.goodput.n;
  for (const AcceleratorTime& part : life.badput) sum += part.n;
  return double(sum) / 1e9;
}

}  // namespace

TEST_CASE("a full restart starts all processes again and loses the work since the checkpoint") {
  // Ready at 100 s, trains from 210 s on; at 500 s it has done 290 s, of which 200 s are saved.
  // The new node is there at 600 s, and 110 s + 30 s later the other 800 s begin.
  const LifeResult life = losing(RestartKind::full).run();
  CHECK(badput(life, Badput::lost_work) == Approx(4 * 90));
  CHECK(finish_seconds(life) == Approx(600 + 140 + 800));
}

TEST_CASE("in place only the lost node's processes start, and a peer hands them the state") {
  // Of 290 steps of 1 s none is under way at 500 s: nothing is lost. The new node starts in 110 s;
  // 5 s for communicators, 3 s for its state, and 710 s are left.
  const LifeResult life = losing(RestartKind::in_place).run();
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(finish_seconds(life) == Approx(600 + 110 + 5 + 3 + 710));
  const LifeResult between = losing(RestartKind::in_place, 500.25s).run();
  CHECK(badput(between, Badput::lost_work) == Approx(4 * 0.25));  // of the step under way
}

TEST_CASE("in place a sharded job goes back to the checkpoint, as every lost part is in no other") {
  Case c = losing(RestartKind::in_place);
  shard(c);
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == Approx(4 * 90));
  CHECK(finish_seconds(life) == Approx(600 + 110 + 5 + 30 + 800));
}

TEST_CASE("a warm spare takes the place at once and is a line of the bill") {
  Case c = losing(RestartKind::warm_spare);
  c.plan.jobs[0].restart->spares = 1;
  c.plan.pools[0].nodes_initial = c.plan.pools[0].nodes_min = c.plan.pools[0].nodes_max = 5;
  c.plan.reclaim.trace.emplace_back();
  const LifeResult life = c.run();
  // Ready since 100 s, its processes run since 210 s: 5 s for communicators and 3 s for the state.
  CHECK(finish_seconds(life) == Approx(500 + 5 + 3 + 710));
  CHECK(badput(life, Badput::provisioning) == Approx(4 * 100));  // of the first start alone
  // It stands by from 100 s to 500 s; the node that comes at 600 s for the lost one until the end.
  // 3.60 USD/h, of which the test's pool charges the second.
  CHECK(cost(life, CostPart::spares) == Approx(0.001 * (400 + 1218 - 600)).epsilon(1e-3));
  CHECK(sum_of_parts(life) == Approx(double(life.total.n) / 1e9));
  Case without = losing(RestartKind::in_place);
  CHECK(cost(without.run(), CostPart::spares) == 0);
}

TEST_CASE("a spare that came a moment ago has still to start") {
  Case c = losing(RestartKind::warm_spare, 130s);
  c.plan.jobs[0].restart->spares = 1;
  c.plan.pools[0].nodes_initial = c.plan.pools[0].nodes_min = c.plan.pools[0].nodes_max = 5;
  c.plan.reclaim.trace.emplace_back();
  // Lost at 130 s, in the first start: the spare has stood by for 30 s of the 110 s.
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == Approx(130 + 80 + 5 + 1000));
}

TEST_CASE(
    "an elastic job goes on with three of four nodes and takes the new one in when it is there") {
  // At 500 s 290 s are done. 5 s later three workers go on at 3/4 of the pace. The new node is
  // there at 600 s and its processes at 710 s: 205 s at 3/4 are 153.75 s of work. Then 5 s + 3 s,
  // and 1000 - 290 - 153.75 are left; a step is never lost, as it grows between two.
  const LifeResult life = elastic().run();
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(finish_seconds(life) == Approx(710 + 8 + 1000 - 290 - 153.75));
  CHECK(double(life.jobs.front().smaller.n) / 1e9 == Approx(4 * 205));
  CHECK(life.jobs.front().growths == 1);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(sum_of_parts(life) == Approx(double(life.total.n) / 1e9));
  // One of four waits for its node and starts while the others train.
  CHECK(badput(life, Badput::provisioning) == Approx(4 * 100 + 95));
}

TEST_CASE("a sharded elastic job goes back to the checkpoint and grows at the next save") {
  Case c = elastic();
  shard(c);
  c.pace.checkpoint_save = 10s;
  // At 500 s: 200 s of work, 10 s of save, 80 s of work that are lost. From 200 s of work on with
  // three: 5 s + 30 s. At 535 + 200 s the save comes in which it grows: 150 s of work are added.
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == Approx(4 * 80));
  CHECK(life.jobs.front().growths == 1);
  // 745 s: saved; 5 s + 30 s; 650 s of work and three saves (at 200, 400 and 600 s of it).
  CHECK(finish_seconds(life) == Approx(745 + 35 + 650 + 3 * 10));
}

TEST_CASE("an elastic job waits where fewer than its least are left") {
  Case c = elastic();
  c.plan.jobs[0].restart->min_workers = 4;
  const LifeResult life = c.run();
  CHECK(life.jobs.front().smaller.n == 0);
  // As in place, but that the new node starts beside the others.
  CHECK(finish_seconds(life) == Approx(600 + 110 + 5 + 710));
}

TEST_CASE("copies that span two nodes go and come whole") {
  Case c = elastic();
  PlannedStrategy& s = c.plan.jobs[0].strategy;
  s.kind = StrategyKind::model_parallel;
  s.layout.tensor = 2;  // of four ranks: two copies of two nodes
  CHECK(workers_of_a_copy(c.plan.jobs[0]) == 2);
  CHECK(copies_hold_all(c.plan.jobs[0]));
  const LifeResult life = c.run();
  // Two of the three that are left train, at half of the pace, for 205 s.
  CHECK(finish_seconds(life) == Approx(710 + 8 + 1000 - 290 - 102.5));
  CHECK(badput(life, Badput::lost_work) == 0);
}

TEST_CASE("a process that fails leaves its node, whatever the restart") {
  for (const RestartKind kind : {RestartKind::full, RestartKind::in_place, RestartKind::elastic}) {
    Case c = kind == RestartKind::elastic ? elastic() : losing(kind);
    c.plan.reclaim.law = NoReclaim{};
    c.plan.failures = {.on = true,
                       .mtbf_per_accelerator = Fact<Seconds>{1h},
                       .repair = Fact<Seconds>{1h},
                       .process_share = Fact<double>{1.0}};
    const LifeResult life = c.run();
    REQUIRE(count(life, Interruption::failure) > 0);
    CHECK(badput(life, Badput::waiting) == 0);  // for no repair
    CHECK(life.finished);
    CHECK(sum_of_parts(life) == Approx(double(life.total.n) / 1e9));
  }
}

TEST_CASE("what is left of the work is decided in one place") {
  LocalTierPace none, own{.every = 60s}, peers{.every = 60s, .outlives_node = true};
  CHECK(kept_after(RestartKind::full, true, none, Loss::process) == Kept::storage);
  CHECK(kept_after(RestartKind::full, true, own, Loss::process) == Kept::local_tier);
  CHECK(kept_after(RestartKind::full, true, own, Loss::node) == Kept::storage);
  CHECK(kept_after(RestartKind::full, false, peers, Loss::node) == Kept::local_tier);
  CHECK(kept_after(RestartKind::full, false, peers, Loss::nodes) == Kept::storage);
  CHECK(kept_after(RestartKind::in_place, true, none, Loss::node) == Kept::processes);
  CHECK(kept_after(RestartKind::elastic, false, none, Loss::node) == Kept::storage);
  CHECK(kept_after(RestartKind::elastic, true, peers, Loss::nodes) == Kept::storage);
}

TEST_CASE("restarts are read as they are written") {
  CHECK(parse_restart("warm_spare")->spares == 1);
  CHECK(parse_restart("warm_spare 3")->spares == 3);
  CHECK(parse_restart("elastic 12")->min == 12);
  CHECK(restart_text(*parse_restart("elastic 12")) == "elastic 12");
  CHECK_FALSE(parse_restart("in_place 2"));
  CHECK_FALSE(parse_restart("elastic 0"));
  CHECK_FALSE(parse_restart("hot"));
}
