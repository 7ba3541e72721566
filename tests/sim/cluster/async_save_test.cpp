#include <catch2/catch.hpp>

#include "lives.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

TEST_CASE("an asynchronous save stops the job for the copy only") {
  Case c = round_case();
  checkpoints(c, 100s, 2s);
  c.pace.checkpoint_write = 30s;
  const LifeResult life = c.run();
  CHECK(finish_seconds(life) == 100 + 1000 + 9 * 2);
  CHECK(badput(life, Badput::checkpoint_save) == Approx(18));
}

TEST_CASE("a write that the node did not live to see is lost with it") {
  Case c = round_case();
  checkpoints(c, 100s, 2s);
  c.pace.checkpoint_write = 30s;
  // Ready at 100; copies end at 202, 304; the second is written at 334.
  reclaim_at(c, {{333s}});
  const LifeResult late = c.run();
  CHECK(badput(late, Badput::lost_work) == Approx(100 + 29));  // 229 s done, 100 saved
  CHECK(finish_seconds(late) == 433 + 900 + 8 * 2);
  c.plan.reclaim.trace = {{335s}};
  const LifeResult written = c.run();
  CHECK(badput(written, Badput::lost_work) == Approx(31));  // 231 s done, 200 saved
  CHECK(finish_seconds(written) == 435 + 800 + 7 * 2);
}

TEST_CASE("on a notice an asynchronous save is waited for, behind the write under way") {
  Case c = round_case();
  checkpoints(c, 100s, 2s);
  c.pace.checkpoint_write = 30s;
  // Notice at 310: the copy of 304 needs until 334; then 2 s and 30 s: 366.
  reclaim_at(c, {{366s}}, 56s);
  const LifeResult in_time = c.run();
  CHECK(badput(in_time, Badput::lost_work) == 0);
  CHECK(in_time.jobs.front().notices_in_time == 1);
  c.plan.reclaim.trace = {{365s}};
  c.plan.reclaim.notice = 55s;
  CHECK(c.run().jobs.front().notices_in_time == 0);
}

TEST_CASE("the next copy waits for the write before it") {
  Case c = round_case();
  checkpoints(c, 20s, 2s);
  c.pace.checkpoint_write = 99s;  // so every 99 s of work
  CHECK(finish_seconds(c.run()) == 100 + 1000 + 10 * 2);
}

TEST_CASE("where a copy is short an asynchronous save loses less time than a blocking one") {
  Case c = round_case(4, 8);
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.reclaim.law = ExponentialReclaim{24h};
  c.pace.steps = 500'000;
  const auto mean = [&](Seconds save, Seconds write) {
    checkpoints(c, 15min, save, 60s);
    c.pace.checkpoint_write = write;
    double sum = 0;
    for (std::uint32_t k = 0; k < 30; ++k) {
      c.options.replication = k;
      sum += finish_seconds(c.run());
    }
    return sum / 30;
  };
  const double blocking = mean(60s, 0s), asynchronous = mean(3s, 60s), free = mean(0s, 0s);
  CHECK(asynchronous < blocking);
  CHECK(asynchronous > free);
}
