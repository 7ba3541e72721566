#include <catch2/catch.hpp>

#include "lives.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

TEST_CASE(
    "an undisturbed life ends after provisioning, start-up, steps and saves, to the nanosecond") {
  Case c = round_case(4, 2);
  c.pace.steps = 1'000'003;
  c.pace.step_by_workers.back() = Seconds{0.123456789};
  c.plan.job_start.image_pull = Fact<Seconds>{30s};
  c.plan.job_start.framework_start = Fact<Seconds>{15s};
  c.plan.job_start.compile = Fact<Seconds>{5s};
  c.pace.evaluation = Seconds{100};
  checkpoints(c, 600s, 7s);
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  // Work: 1,000,003 x 0.123456789 s + 100 s = 123,557.159370367 s; 205 whole intervals of 600 s fit
  // (123,000 s), so 205 saves of 7 s. 100 s to the nodes, 50 s to the first step.
  const std::int64_t expected =
      100'000'000'000 + 50'000'000'000 + 123'557'159'370'367 + 205 * 7'000'000'000;
  CHECK(life.finish.time_since_epoch().count() == expected);
  CHECK(life.steps_done == 1'000'003);
  CHECK(badput(life, Badput::provisioning) == Approx(8 * 100));
  CHECK(badput(life, Badput::initialization) == Approx(8 * 50));
  CHECK(badput(life, Badput::checkpoint_save) == Approx(8 * 205 * 7));
  CHECK(goodput(life) == Approx(8 * 123'557.159370367));
  CHECK(life.interruptions == std::array<std::int64_t, kInterruptionCauses>{});
}

TEST_CASE("no save is made on the very end of the work") {
  Case c = round_case();
  checkpoints(c, 250s, 10s);  // 1,000 s: saves after 250, 500 and 750 s of work
  CHECK(finish_seconds(c.run()) == 100 + 1000 + 3 * 10);
  c.pace.steps = 1001;
  CHECK(finish_seconds(c.run()) == 100 + 1001 + 4 * 10);
}

TEST_CASE("waiting for input is badput of its own, evaluation is not") {
  Case c = round_case(2, 1);
  c.pace.input_share = 0.25;
  c.pace.evaluation = 200s;
  const LifeResult life = c.run();
  // 1,000 s of steps, a quarter of which waits for input, and 200 s of evaluation, on 2
  // accelerators.
  CHECK(badput(life, Badput::data_loading) == Approx(2 * 250));
  CHECK(goodput(life) == Approx(2 * (750 + 200)));
}

TEST_CASE(
    "a reclaimed node stops synchronous training, and the work since the last checkpoint is done "
    "again") {
  Case c = round_case(2, 1);
  c.plan.job_start.framework_start = Fact<Seconds>{20s};
  checkpoints(c, 100s, 10s, 5s);
  // Ready at 100, trains from 120. Cycles of 110 s end at 230, 340. Node 1 goes at 400: 60 s of
  // work are lost.
  reclaim_at(c, {{}, {400s}});
  const LifeResult life = c.run();
  // Its instance group makes a new one: ready at 500; start 20 s, restore 5 s: trains from 525 with
  // 200 s done. 800 s of work: 7 saves.
  CHECK(finish_seconds(life) == 525 + 800 + 7 * 10);
  CHECK(count(life, Interruption::preemption) == 1);
  CHECK(badput(life, Badput::lost_work) == Approx(2 * 60));
  CHECK(badput(life, Badput::checkpoint_restore) == Approx(2 * 5));
  CHECK(badput(life, Badput::initialization) == Approx(2 * 40));
  CHECK(badput(life, Badput::provisioning) == Approx(2 * 200));
  CHECK(badput(life, Badput::checkpoint_save) == Approx(2 * 90));
}

TEST_CASE("a spot reclaim during a checkpoint save loses the work since the previous checkpoint") {
  Case c = round_case();
  checkpoints(c, 100s, 10s);
  reclaim_at(c, {{315s}});  // saves run 200..210 and 310..320
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == Approx(100));
  CHECK(badput(life, Badput::checkpoint_save) == Approx(10 + 5 + 8 * 10));
  // New node at 415; 900 s left: 8 saves.
  CHECK(finish_seconds(life) == 415 + 900 + 80);
}

TEST_CASE("a notice as long as a save loses nothing, a nanosecond less loses the work") {
  Case c = round_case();
  checkpoints(c, 100s, 10s);
  // The notice comes at 350 with 40 s of work since the checkpoint that ended at 310... of 110 s
  // cycles: 210, 320.
  reclaim_at(c, {{360s}}, 10s);
  const LifeResult in_time = c.run();
  CHECK(badput(in_time, Badput::lost_work) == 0);
  // Trained 320..350: 230 s done. The emergency save ends as the node goes; a new one is there at
  // 460; 770 s: 7 saves.
  CHECK(finish_seconds(in_time) == 460 + 770 + 70);
  CHECK(count(in_time, Interruption::preemption) == 1);

  c.plan.reclaim.notice = 10s - 1ns;
  const LifeResult late = c.run();
  CHECK(badput(late, Badput::lost_work) == Approx(40));  // it trained on until 360
  CHECK(finish_seconds(late) == 460 + 800 + 70);
}

TEST_CASE("a notice during a save waits for that save only") {
  Case c = round_case();
  checkpoints(c, 100s, 10s);
  reclaim_at(c, {{318s}}, 3s);  // save 310..320 would end too late
  CHECK(badput(c.run(), Badput::lost_work) == Approx(100));
  c.plan.reclaim.trace = {{321s}};  // notice at 318: the save has 2 s to go
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == 0);
  CHECK(finish_seconds(life) == 421 + 800 + 70);
}

TEST_CASE("without checkpoints a notice saves nothing") {
  Case c = round_case();
  reclaim_at(c, {{600s}}, 120s);
  const LifeResult life = c.run();
  CHECK(badput(life, Badput::lost_work) == Approx(500));
  CHECK(finish_seconds(life) == 700 + 1000);
}
