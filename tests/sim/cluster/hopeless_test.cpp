#include <catch2/catch.hpp>

#include "lives.h"

// Lives that would never end well end early, with the reason.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

/// A node that is taken again after 10 s on average, 100 s after each request.
Case fleeting() {
  Case c = round_case(1);
  c.plan.pools[0].pricing = CapacityType::spot;
  c.plan.reclaim.law = ExponentialReclaim{10s};
  return c;
}

}  // namespace

TEST_CASE("without checkpoints a job is given up after ten thousand gaps that were too short") {
  // 1,000 s in one go have a chance of exp(-100).
  const LifeResult life = fleeting().run();
  CHECK_FALSE(life.finished);
  CHECK(life.failure ==
        "interrupted 10000 times: at this rate not finished within the horizon of 1095 d");
  CHECK(life.interruptions[std::size_t(Interruption::preemption)] == 10'000);
}

TEST_CASE("with checkpoints a job is given up when its rate of saving is beyond doubt too low") {
  Case c = fleeting();
  c.pace.steps = 1'000'000'000;  // 31 years of work
  c.plan.jobs[0].steps = c.pace.steps;
  checkpoints(c, 1s, 0s);
  const LifeResult life = c.run();
  CHECK_FALSE(life.finished);
  CHECK_THAT(life.failure, Catch::Matchers::StartsWith("interrupted 1000 times"));
  CHECK(life.steps_done > 1000);
}

TEST_CASE("a job that saves enough between its interruptions is never given up") {
  // 20,000 steps, some 10 in each gap: about 2,000 interruptions.
  Case c = fleeting();
  c.pace.steps = 20'000;
  c.plan.jobs[0].steps = c.pace.steps;
  checkpoints(c, 1s, 0s);
  const LifeResult life = c.run();
  CHECK(life.finished);
  CHECK(life.interruptions[std::size_t(Interruption::preemption)] > 1000);
}

TEST_CASE("a job submitted years after the first has the whole horizon before it") {
  Case c = round_case(1);
  c.plan.jobs.push_back(c.plan.jobs[0]);
  c.plan.jobs[1].submit = Seconds{4.0 * 365 * 86400};
  const std::vector<JobPace> paces{c.pace, c.pace};
  const LifeResult life = simulate_life(c.plan, requests_of(c.plan, paces), c.options);
  CHECK(life.finished);
  CHECK(life.jobs[1].finish > life.jobs[1].submit);
}
