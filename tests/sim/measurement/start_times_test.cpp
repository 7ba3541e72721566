#include "sim/measurement/start_times.h"

#include <catch2/catch.hpp>

#include "sim/measurement/calibration/calibrate.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

SimTime at(double seconds) { return SimTime{to_clock(Seconds{seconds})}; }

/// Two starts in pods, the second from a checkpoint; only the first pulled its image.
Measurements two_starts() {
  Measurements m;
  m.runs = {{.attempt = 0, .at = Seconds{40}, .steps = 30},
            {.attempt = 1, .at = Seconds{100}, .first_step = 20, .steps = 30}};
  const auto step = [](std::int64_t attempt, int rank, std::int64_t k, double end) {
    return StepRecord{.attempt = attempt,
                      .rank = rank,
                      .step = k,
                      .at = Seconds{end},
                      .seconds = Seconds{1},
                      .compute = Seconds{1}};
  };
  for (int k = 0; k < 20; ++k) m.steps.push_back(step(0, 0, k, 44 + k));  // 3 s after the process
  m.steps.push_back(step(1, 1, 20, 102));                                 // of another rank
  for (int k = 20; k < 30; ++k) m.steps.push_back(step(1, 0, k, 110 + k - 20));
  m.checkpoints.push_back({.attempt = 1,
                           .action = CheckpointAction::restore,
                           .step = 20,
                           .at = Seconds{107},
                           .seconds = Seconds{5},
                           .size = Bytes{1}});
  m.timeline.spans = {{"pull image", "initialization", 0, 0, at(10), at(38)},
                      {"start container", "initialization", 0, 0, at(38), at(40)},
                      {"pull image", "initialization", 0, 0, at(98), at(98)},  // it was there
                      {"start container", "initialization", 0, 0, at(98), at(100)}};
  return m;
}

ScenarioFile scenario() {
  return parse_scenario(
             "name: pods\nworkload:\n  model: mlp_mnist\n"
             "  dataset: {samples: 60000, bytes_per_sample: 785B}\n"
             "  train: {steps: 30}\n  batch_per_accelerator: 64\n"
             "  strategy: {kind: single}\n  checkpoint: {interval: none}\n"
             "cluster:\n  provider: gcp\n  region: us-central1\n"
             "  pools: [{name: p, machine: n1-standard-16, nodes: 1}]\n",
             "pods.yaml")
      .value();
}

}  // namespace

TEST_CASE("a start is told apart into image, container, process and checkpoint") {
  const StartTimes times = start_times(two_starts());
  CHECK(times.process == std::vector<double>{3, 4});
  CHECK(times.restore == std::vector<double>{5});
  CHECK(times.pull == std::vector<double>{28});
  CHECK(times.container == std::vector<double>{2, 2});
  CHECK(start_times({}).process.empty());

  // An evaluation that is made again before the first step is no part of a start.
  Measurements again = two_starts();
  const StepRecord first = again.steps.front();
  again.evaluations.push_back(
      {.attempt = first.attempt, .step = first.step, .seconds = Seconds{1}});
  again.evaluations.push_back(
      {.attempt = first.attempt, .step = first.step + 1, .seconds = Seconds{1}});
  CHECK(start_times(again).process.front() == Approx(times.process.front() - 1));
}

TEST_CASE("a plan goes on as the run's own start did, on nodes that are there or are made") {
  const Plan planned = make_plan(scenario(), test::shipped_catalog()).value();
  const StartTimes times = start_times(two_starts());
  REQUIRE(planned.pools.front().provisioning.value > Seconds{0});

  Plan there = planned;
  start_as_seen(there, times, true);
  CHECK(there.job_start.framework_start.value == Seconds{5});
  CHECK(there.job_start.framework_start.low < Seconds{5});
  CHECK(there.job_start.compile.value == Seconds{0});
  CHECK(there.job_start.image_pull.value == Seconds{0});
  CHECK(there.pools.front().provisioning.value == Seconds{0});

  Plan made = planned;
  start_as_seen(made, times, false);
  CHECK(made.job_start.framework_start.value == Seconds{5});
  CHECK(made.job_start.image_pull.value == Seconds{28});
  CHECK(made.pools.front().provisioning.value == planned.pools.front().provisioning.value);

  Plan unknown = planned;
  start_as_seen(unknown, {}, true);
  CHECK(unknown.job_start.framework_start.value == planned.job_start.framework_start.value);
  CHECK(unknown.pools.front().provisioning.value == planned.pools.front().provisioning.value);
}

TEST_CASE("a run that pulled no image says nothing of how long that takes") {
  const std::string kImage = "operations/job_start.image_pull_s";
  const std::string kFramework = "operations/job_start.framework_start_s";
  const auto corrected = [](const Measurements& m, const std::string& parameter) {
    const MeasuredRun run = measured_run("pods", scenario(), m);
    const auto found = calibrate({&run, 1}, test::shipped_catalog(), *make_fluid_network());
    REQUIRE(found);
    for (const Correction& c : found->corrections)
      if (c.parameter == parameter) return std::optional(c.calibrated.value);
    return std::optional<double>();
  };
  Measurements m = two_starts();
  const auto pulled = corrected(m, kImage);
  REQUIRE(pulled);
  CHECK(*pulled < 50);  // 28 s measured once, 70 s in the catalog
  CHECK(corrected(m, kFramework));
  m.timeline.spans.clear();
  CHECK_FALSE(corrected(m, kImage));
  const auto framework = corrected(m, kFramework);
  REQUIRE(framework);
  CHECK(*framework < 10);  // 3 and 4 s measured, 40 s in the catalog
}
