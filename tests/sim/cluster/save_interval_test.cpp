#include "sim/cluster/save_interval.h"

#include <catch2/catch.hpp>

#include "sim/cluster/life/life.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// Two workers; one of their two accelerators fails every ten hours.
Plan failing_plan(CheckpointSpec::Mode mode) {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  plan.failures.on = true;
  plan.failures.mtbf_per_accelerator = Fact<Seconds>{Seconds{72000}};
  plan.jobs.front().checkpoint.mode = mode;
  plan.jobs.front().checkpoint.save_overhead = Fact<Seconds>{Seconds{2}};
  return plan;
}

}  // namespace

TEST_CASE("a run saves at the interval that its forecast has set") {
  Plan plan = failing_plan(CheckpointSpec::Mode::optimal);
  const PlannedWorkload& job = plan.jobs.front();
  const Seconds mtti = mean_time_to_interruption(plan, job);
  CHECK(planned_save_interval(plan, job) == optimal_checkpoint_interval(Seconds{2}, mtti));
  plan.jobs.front().checkpoint.interval = Seconds{321};
  CHECK(planned_save_interval(plan, job) == Seconds{321});
}

TEST_CASE("the measured cost of a save moves the interval of mode optimal alone") {
  const Plan plan = failing_plan(CheckpointSpec::Mode::optimal);
  const PlannedWorkload& job = plan.jobs.front();
  const Seconds planned = planned_save_interval(plan, job);
  // sqrt(2 d M): four times the cost is about twice the interval.
  const auto dearer = amended_save_interval(plan, job, planned, Seconds{8});
  REQUIRE(dearer);
  CHECK(*dearer / planned == Approx(2).epsilon(0.02));
  // A tenth more cost is a twentieth of the interval: not worth a change.
  CHECK_FALSE(amended_save_interval(plan, job, planned, Seconds{2.2}));
  CHECK_FALSE(amended_save_interval(plan, job, *dearer, Seconds{8}));
  for (const auto mode : {CheckpointSpec::Mode::interval, CheckpointSpec::Mode::none}) {
    Plan fixed = failing_plan(mode);
    fixed.jobs.front().checkpoint.interval = Seconds{60};
    CHECK_FALSE(amended_save_interval(fixed, fixed.jobs.front(), Seconds{60}, Seconds{1000}));
  }
}

TEST_CASE("a job that nothing interrupts is never saved") {
  Plan plan = failing_plan(CheckpointSpec::Mode::optimal);
  plan.failures.on = false;
  const PlannedWorkload& job = plan.jobs.front();
  CHECK(planned_save_interval(plan, job) == Seconds::max());
  CHECK_FALSE(amended_save_interval(plan, job, Seconds::max(), Seconds{8}));
  plan.jobs.front().checkpoint.mode = CheckpointSpec::Mode::none;
  CHECK(planned_save_interval(plan, job) == Seconds::max());
}
