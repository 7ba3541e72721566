#include <catch2/catch.hpp>
#include <vector>

#include "sim/measurement/trial.h"
#include "sim/scenario/resolve/one_worker.h"
#include "sim/step/step.h"
#include "support/plans.h"

using namespace reckon;

TEST_CASE("the warm-up is cut where the rest has the smallest standard error") {
  // Behind the first three all are equal: no error is left.
  CHECK(warmup_length(std::vector<double>{9, 5, 3, 1, 1, 1, 1, 1, 1, 1}) == 3);
  // Nothing to cut but the first, which never counts.
  CHECK(warmup_length(std::vector<double>{1, 1, 1, 1, 1, 1}) == 1);
  // A late disturbance is no warm-up. Cut at 1: squares of {1,1,1,1,1,2} about 7/6 are 5/6; over
  // 36: 0.0231. At 3: {1,1,1,2} about 5/4: 3/4; over 16: 0.0469.
  CHECK(warmup_length(std::vector<double>{1, 1, 1, 1, 1, 1, 2}) == 1);
  CHECK(warmup_length(std::vector<double>{7}) == 0);
  CHECK(warmup_length(std::vector<double>{}) == 0);
}

TEST_CASE("the interval of the mean step is Student's t over what was measured") {
  // The first is warm-up. Mean of {2, 2, 1, 3, 2} = 2; deviation sqrt(2/4); over sqrt(5):
  // 0.316228; t(4, 0.95) = 2.13185: 0.674152.
  const auto fit = fit_trial(std::vector<double>{50, 2, 2, 1, 3, 2});
  REQUIRE(fit);
  CHECK(fit->warmup == 1);
  CHECK(fit->values == 5);
  CHECK(fit->mean.count() == Approx(2));
  CHECK(fit->low.count() == Approx(2 - 0.674152).epsilon(1e-5));
  CHECK(fit->high.count() == Approx(2 + 0.674152).epsilon(1e-5));
  CHECK_FALSE(fit_trial(std::vector<double>{50, 2, 2, 1, 3}));
  CHECK_FALSE(fit_trial(std::vector<double>{}));
}

TEST_CASE("a plan at the measured speed has that step, and its workers speak as before") {
  const Plan plan =
      test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 4);
  const auto network = make_fluid_network();
  const auto alone = one_worker(plan);
  REQUIRE(alone);
  const Seconds before = estimate_step(*alone, alone->jobs.front(), *network).step;
  const StepEstimate whole = estimate_step(plan, plan.jobs.front(), *network);
  for (const double slower : {1.0, 7.0}) {
    TrialFit fit;
    fit.mean = before * slower;
    fit.low = 0.9 * fit.mean;
    fit.high = 1.2 * fit.mean;
    const auto scaled = with_measured_step(plan, *network, fit);
    REQUIRE(scaled);
    const auto one = one_worker(*scaled);
    CHECK(estimate_step(*one, one->jobs.front(), *network).step.count() ==
          Approx(fit.mean.count()).epsilon(1e-6));
    const StepEstimate after = estimate_step(*scaled, scaled->jobs.front(), *network);
    CHECK(after.communication.count() == Approx(whole.communication.count()).epsilon(1e-9));
    CHECK(after.sent_per_worker == whole.sent_per_worker);
  }
}

TEST_CASE("no speed explains a step shorter than what does not depend on speed") {
  const Plan plan =
      test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 4);
  TrialFit fit;
  fit.mean = fit.low = fit.high = Seconds{1e-12};
  CHECK_FALSE(with_measured_step(plan, *make_fluid_network(), fit));
}

TEST_CASE("a model that is cut among accelerators has no worker that runs it alone") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 4);
  plan.jobs.front().strategy.layout.tensor = 2;
  CHECK_FALSE(one_worker(plan));
}
