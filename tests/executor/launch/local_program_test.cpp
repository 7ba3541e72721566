#include <catch2/catch.hpp>

#include "executor/launch/local/run.h"
#include "executor/launch/run_folder.h"
#include "executor/train/records/measurement_log.h"
#include "support/plans.h"
#include "support/text.h"

// A run on this machine of a program that is not ours.
namespace reckon {
namespace {

using namespace std::chrono_literals;

struct WatchedProgram {
  RunEnd end;
  Measurements measured;
};

/// A program that is not ours, of a plan with 100 steps; ends where it is started more than five
/// times.
WatchedProgram run_program(const test::RunFolder& d, const std::string& command, RetryRules retry,
                           StepPatience patience = {}) {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  plan.jobs.front().steps = 100;
  Forecast forecast;
  forecast.scenario = "round";
  forecast.steps = plan.jobs.front().steps;
  forecast.step.step = 10ms;
  forecast.times_seconds = {0.18, 0.2, 0.22};
  forecast.step_factors = {0.9, 1, 1.1};
  forecast.start_seconds = {0, 0, 0};
  auto reader = ProgressReader::from({});
  REQUIRE(reader);
  LocalRunOptions options;
  options.directory.root = d.path() / "run";
  ContainerSpec container;
  container.command = {"sh", "-c", command};
  options.foreign = LocalProgram{container, std::move(*reader)};
  options.retry = retry;
  options.patience = patience;
  std::size_t starts_again = 0;
  WatchedProgram w;
  RunObserver observer;
  observer.message = [&](const std::string& text) {
    starts_again += test::contains(text, "restarting in");
  };
  const auto stop = [&] { return starts_again > 5 ? StopRequest::at_once : StopRequest::none; };
  w.end = run_locally(plan, forecast, options, observer, stop);
  w.measured = read_measurement_log(options.directory.measurements()).value();
  return w;
}

TEST_CASE("75 of a program that is not ours is a failure like any other, and counts") {
  const test::RunFolder d;
  const WatchedProgram w =
      run_program(d, "echo step 1; sleep 0.1; echo step 2; exit 75", {2, 10ms, 40ms, false});
  CHECK(w.end.end.verdict == Verdict::hopeless);
  CHECK(w.end.end.attempts == 3);
  CHECK(w.measured.interruptions.size() == 2);
}

TEST_CASE("a program that tells of steps and then of none is ended and started again") {
  const test::RunFolder d;
  // At its first start it hangs behind step 2, and ends well when it is told to end.
  const std::string hangs =
      "trap 'exit 0' TERM; echo step 1; sleep 0.1; echo step 2; "
      "if [ $RECKON_ATTEMPT = 0 ]; then while :; do sleep 0.05; done; fi; "
      "sleep 0.1; echo step 100";
  const WatchedProgram w = run_program(d, hangs, {2, 10ms, 40ms, false}, {.step = Seconds{1}});
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 2);
  REQUIRE(w.measured.interruptions.size() == 1);
  const InterruptionRecord& hang = w.measured.interruptions.front();
  CHECK(hang.cause == Interruption::failure);
  CHECK(hang.detail == "no step was told for 1.00 s behind step 2");
  CHECK(!hang.rank);
}

TEST_CASE("a program whose steps nobody can read is not ended for them") {
  const test::RunFolder d;
  const WatchedProgram w = run_program(d, "echo hello; sleep 1; echo goodbye",
                                       {2, 10ms, 40ms, false}, {.step = Seconds{0.2}});
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 1);
}

}  // namespace
}  // namespace reckon
