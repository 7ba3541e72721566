#include <catch2/catch.hpp>

#include "lives.h"
#include "sim/cluster/progress.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

/// 10 s of work and 1 s for a save to the nodes; after three of them 5 s for one to the storage.
CheckpointCycle two_tiers(SimDuration local_write = {}, SimDuration write = {}) {
  CheckpointCycle cycle{30s, 5s, write};
  cycle.local = {10s, 1s, local_write};
  return cycle;
}
Progress fresh(SimDuration total = 1000s) {
  Progress progress;
  progress.total = total;
  return progress;
}

/// The same, a nanosecond-free second at a time.
struct Reference {
  std::int64_t done = 0, local = 0, stored = 0, saving = 0;
};
Reference stepwise(std::int64_t seconds) {
  Reference r;
  std::int64_t t = 0;
  while (true) {
    for (int piece = 0; piece < 3; ++piece) {
      for (int k = 0; k < 10; ++k, ++r.done)
        if (t++ == seconds) return r;
      if (t++ == seconds) return r;
      ++r.saving;
      r.local = r.done;
    }
    for (int k = 0; k < 5; ++k, ++r.saving)
      if (t++ == seconds) return r;
    r.stored = r.done;
  }
}

}  // namespace

TEST_CASE("two tiers in closed form are what a second after the other gives") {
  const CheckpointCycle cycle = two_tiers();
  CHECK(cycle.length() == SimDuration{38s});
  for (const std::int64_t stride : {1, 7, 11, 38, 95}) {
    Progress progress = fresh();
    SimDuration saving{};
    for (std::int64_t t = stride; t < 400; t += stride) {
      saving += advance(progress, cycle, std::chrono::seconds(stride), 1).saving;
      const Reference want = stepwise(t);
      REQUIRE(progress.done == std::chrono::seconds(want.done));
      REQUIRE(progress.saved_local == std::chrono::seconds(want.local));
      REQUIRE(progress.saved == std::chrono::seconds(want.stored));
      REQUIRE(saving == std::chrono::seconds(want.saving));
    }
  }
}

TEST_CASE("a save at the very end is not made, of either tier") {
  const CheckpointCycle cycle = two_tiers();
  CHECK(time_to_finish(fresh(10s), cycle, 1) == SimDuration{10s});
  CHECK(time_to_finish(fresh(11s), cycle, 1) == SimDuration{12s});
  CHECK(time_to_finish(fresh(30s), cycle, 1) == SimDuration{32s});
  CHECK(time_to_finish(fresh(31s), cycle, 1) == SimDuration{39s});
  Progress progress = fresh(31s);
  const SimDuration all = time_to_finish(progress, cycle, 1);
  advance(progress, cycle, 20s, 1);
  CHECK(time_to_finish(progress, cycle, 1) == all - SimDuration{20s});
  advance(progress, cycle, all - SimDuration{20s}, 1);
  CHECK(progress.done == progress.total);
}

TEST_CASE("a copy counts when its peers, or the storage, have it") {
  const CheckpointCycle cycle = two_tiers(4s, 20s);
  Progress progress = fresh();
  advance(progress, cycle, 14s, 1);
  CHECK(progress.saved_local == SimDuration{});  // made at 11 s, there at 15 s
  advance(progress, cycle, 1s, 1);
  CHECK(progress.saved_local == SimDuration{10s});
  advance(progress, cycle, 42s, 1);  // 57 s: the storage's copy was made at 38 s
  CHECK(progress.saved == SimDuration{});
  advance(progress, cycle, 1s, 1);
  CHECK(progress.saved == SimDuration{30s});
  go_back_to_local(progress);
  CHECK(progress.done == progress.saved_local);
  go_back(progress);
  CHECK(progress.done == SimDuration{30s});
}

namespace {

/// Four nodes whose state is sharded; node 0 is lost at 500 s and replaced 100 s later. Work from
/// 100 s on: 50 s, a save of 1 s to the nodes; every fourth time one of 10 s to the storage.
Case tiers(bool outlives_node) {
  Case c = round_case(4);
  c.plan.jobs[0].strategy.kind = StrategyKind::sharded;
  c.plan.jobs[0].strategy.layout.zero_stage = 3;
  reclaim_at(c, {{500s}, {}, {}, {}});
  c.plan.reclaim.trace_length = Seconds{1e9};
  checkpoints(c, 200s, 10s, 60s);
  c.pace.local = {
      .every = 50s, .save = 1s, .write = {}, .restore = 2s, .outlives_node = outlives_node};
  return c;
}

}  // namespace

TEST_CASE("with copies on peers one lost node costs the work since the last of them") {
  // 400 s from the start: 200 + 4 + 10 = 214 s a cycle of 200 s. 186 s into the second: three times
  // 51 s, and 33 s that are lost. 350 s are kept, and 2 s bring them back.
  const LifeResult life = tiers(true).run();
  CHECK(badput(life, Badput::lost_work) == Approx(4 * 33));
  CHECK(badput(life, Badput::checkpoint_restore) == Approx(4 * 2));
  // 650 s of work are left: three cycles of 214 s, and 50 s.
  CHECK(finish_seconds(life) == Approx(600 + 2 + 3 * 214 + 50));
}

TEST_CASE("with copies on the own disk alone one lost node costs all since the storage's") {
  const LifeResult life = tiers(false).run();
  CHECK(badput(life, Badput::lost_work) == Approx(4 * (150 + 33)));
  CHECK(badput(life, Badput::checkpoint_restore) == Approx(4 * 60));
  CHECK(finish_seconds(life) == Approx(600 + 60 + 800 + 16 - 1 + 3 * 10));
}

TEST_CASE("two nodes at once go back to the storage, and all time is accounted for") {
  Case c = tiers(true);
  c.plan.reclaim.trace = {{500s}, {500s}, {}, {}};
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == Approx(4 * (150 + 33)));
  Int128 sum = life.goodput.n;
  for (const AcceleratorTime& part : life.badput) sum += part.n;
  CHECK(sum == life.total.n);
}

TEST_CASE("stragglers are a share of the time that is worked, and of nothing else") {
  Case c = round_case(4);
  checkpoints(c, 200s, 10s);
  const LifeResult without = c.run();
  c.plan.failures.straggler_share = Fact<double>{0.2};
  const LifeResult with = c.run();
  // 1,000 s of steps take 1,250 s: 2 saves more.
  CHECK(finish_seconds(with) == Approx(finish_seconds(without) + 250 + 2 * 10));
  CHECK(badput(with, Badput::stragglers) == Approx(4 * 250));
  CHECK(goodput(with) == Approx(goodput(without)));
}
