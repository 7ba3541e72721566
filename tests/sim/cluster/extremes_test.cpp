#include <catch2/catch.hpp>

#include "lives.h"
#include "sim/cluster/autoscaler.h"
#include "sim/cluster/disruptions.h"
#include "sim/cluster/never.h"
#include "sim/cluster/progress.h"

// Times and sums that 64 bits of nanoseconds do not hold.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

constexpr Seconds kYear = std::chrono::hours(365 * 24);

}  // namespace

TEST_CASE("the time of many nodes is longer than the clock") {
  Case c = round_case(400);  // x 0.9 years are 360 years, the clock has 292
  c.pace.steps = std::int64_t(0.9 * kYear.count());
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  CHECK(to_seconds(life.node_time[0]).count() ==
        Approx(400 * (0.9 * kYear.count() + 100)).epsilon(1e-6));
}

TEST_CASE("8,192 nodes at 200 USD/h for 1.5 years cost 21.5 billion USD") {
  Case c = round_case(8192);
  c.plan.pools[0].price.machine = HourlyRate{200'000'000'000};
  c.plan.pools[0].price.accelerators = {};
  c.pace.steps = std::int64_t(1.5 * kYear.count());
  const LifeResult life = c.run();
  REQUIRE(life.finished);
  const double hours = 1.5 * 8760 + 100.0 / 3600;
  CHECK(to_usd(life.bill).v == Approx(8192 * 200 * hours).epsilon(1e-6));
}

TEST_CASE("what is rarer than the clock is long never happens") {
  Case c = round_case(2);
  c.plan.failures = {.on = true,
                     .mtbf_per_accelerator = Fact<Seconds>{10'000 * kYear},
                     .repair = Fact<Seconds>{100 * kYear}};
  c.plan.maintenance = {.on = true,
                        .every = Fact<Seconds>{250 * kYear},
                        .notice = 100 * kYear,
                        .duration = Fact<Seconds>{100 * kYear}};
  const LifeResult life = c.run();
  CHECK(life.finished);
  CHECK(finish_seconds(life) == Approx(1100));
}

TEST_CASE("a delay drawn beyond the clock is never, not an error and not in the past") {
  Fact<Seconds> delay{10 * kYear};
  delay.low = 1s;
  delay.high = 100 * kYear;
  const DelayLaw law(delay);
  for (std::uint32_t k = 0; k < 2000; ++k) {
    RandomStream stream(1, k, kProvisioning, 0);
    const SimDuration drawn = law.draw(stream);
    CHECK(drawn >= SimDuration{0});
    CHECK(drawn <= to_clock(kNever));
  }
}

TEST_CASE("nodes that come after the horizon leave the job unfinished") {
  Case c = round_case(1);
  c.plan.pools[0].provisioning = Fact<Seconds>{100 * kYear};
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(life.bill == NanoUsd{});
}

TEST_CASE("a century of work with saves of a century ends in a century") {
  const Progress progress{.total = to_clock(100 * kYear), .phase = 2s};
  const CheckpointCycle cycle{1s, to_clock(20 * kYear)};
  for (const double speed : {1.0, 0.5, 1e-9}) {
    const SimDuration time = time_to_finish(progress, cycle, speed);
    CHECK(time == to_clock(100 * kYear));
  }
}

TEST_CASE("times of a plan that are centuries long end at the horizon") {
  Case c = round_case(2);
  c.plan.job_start.image_pull = Fact<Seconds>{100 * kYear};
  c.plan.job_start.framework_start = Fact<Seconds>{100 * kYear};
  c.plan.job_start.compile = Fact<Seconds>{100 * kYear};
  checkpoints(c, 100 * kYear, 100 * kYear, 100 * kYear);
  c.plan.pools[0].patience = 100 * kYear;
  c.plan.autoscaler.node_group_backoff_max = 100 * kYear;
  c.plan.retry.cap = 100 * kYear;
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK(finish_seconds(life) == Approx(3 * kYear.count()));
  CHECK(badput(life, Badput::initialization) == Approx(2 * (3 * kYear.count() - 100)));
}
