#include <catch2/catch.hpp>
#include <cmath>

#include "lives.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

/// Two nodes that fail once in 20 h, a run of about ten days.
Case failing(double hang_share, Seconds detection) {
  Case c = round_case(2, 1);
  c.pace.steps = 800'000;
  checkpoints(c, 600s, 5s, 10s);
  c.plan.failures = {.on = true,
                     .mtbf_per_accelerator = Fact<Seconds>{20h},
                     .repair = Fact<Seconds>{300s},
                     .hang_share = Fact<double>{hang_share},
                     .hang_detection = Fact<Seconds>{detection}};
  return c;
}

}  // namespace

TEST_CASE("a hang costs all accelerators the time until it is found out") {
  const LifeResult crash = failing(0, 0s).run();
  // Found out at once, a hang is a crash: the same failures at the same times.
  const LifeResult at_once = failing(1, 0s).run();
  CHECK(at_once.finish == crash.finish);
  CHECK(at_once.badput == crash.badput);
  Case c = failing(1, 600s);
  double lost = 0, failures = 0, lost_before = 0, failures_before = 0;
  for (std::uint32_t k = 0; k < 40; ++k) {
    c.options.replication = k;
    const LifeResult life = c.run();
    lost += badput(life, Badput::lost_work);
    failures += double(count(life, Interruption::failure));
    Case before = failing(0, 0s);
    before.options.replication = k;
    const LifeResult quick = before.run();
    lost_before += badput(quick, Badput::lost_work);
    failures_before += double(count(quick, Interruption::failure));
  }
  REQUIRE(failures > 500);
  // Of the job's two accelerators, 600 s for each that struck while it trained (about all).
  const double more = lost / failures - lost_before / failures_before;
  CHECK(more == Approx(2 * 600).epsilon(0.1));
}

TEST_CASE("hangs are a share of the failures") {
  const LifeResult none = failing(0, 3600s).run(), all = failing(1, 3600s).run();
  const LifeResult half = failing(0.5, 3600s).run();
  CHECK(none.finish < half.finish);
  CHECK(half.finish < all.finish);
}

TEST_CASE("maintenance of a whole pool at once interrupts its gang once") {
  Case c = round_case(16, 1);
  c.pace.steps = 3'000'000;
  checkpoints(c, 600s, 5s, 10s);
  c.plan.maintenance = {
      .on = true, .every = Fact<Seconds>{24h * 5}, .notice = 1h, .duration = Fact<Seconds>{20min}};
  double apart = 0, together = 0, days = 0;
  for (std::uint32_t k = 0; k < 20; ++k) {
    c.options.replication = k;
    c.plan.maintenance.grouped = false;
    apart += double(count(c.run(), Interruption::maintenance));
    c.plan.maintenance.grouped = true;
    const LifeResult life = c.run();
    together += double(count(life, Interruption::maintenance));
    days += finish_seconds(life) / 86400;
  }
  // One in five days for all, and not for each of 16; four standard errors of a Poisson count.
  const double expected = days / 5;
  CHECK(together == Approx(expected).margin(4 * std::sqrt(expected)));
  CHECK(apart > 10 * together);
  c.plan.jobs[0].checkpoint.notice.policy = OnNotice::none;
  const LifeResult unsaved = c.run();
  CHECK(double(count(unsaved, Interruption::maintenance)) < 3 * days / 20 / 5);
  CHECK(badput(unsaved, Badput::lost_work) > 0);
}
