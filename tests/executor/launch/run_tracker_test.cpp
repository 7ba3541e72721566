#include <catch2/catch.hpp>

#include "executor/launch/run_tracker.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSteps = 1000;

/// 1,000 steps of 10 ms; saves of 3 s behind every second of steps.
Forecast slow_saves() {
  Forecast f;
  f.steps = kSteps;
  f.step.step = 10ms;
  f.checkpoint_interval = 1s;
  for (int k = 0; k < 21; ++k) {
    f.step_factors.push_back(1);
    f.start_seconds.push_back(100);
    f.times_seconds.push_back(137);
  }
  f.time_seconds = quantiles(f.times_seconds);
  f.badput[std::size_t(Badput::checkpoint_save)] = 27.0 / 137;
  return f;
}

CheckpointRecord save(std::int64_t attempt, std::int64_t step, Seconds blocked) {
  return {.attempt = attempt, .step = step, .blocked = blocked};
}

TEST_CASE("the live forecast of a run learns from its saves, also from those before it went on") {
  RunTracker watched(slow_saves(), kSteps, std::nullopt);
  std::vector<StepRecord> steps;
  std::vector<CheckpointRecord> saves;
  watched.begin_attempt(0);
  for (std::int64_t k = 0; k < 500; ++k) {
    watched.step_done(k, 10ms, 32, 1.0);
    steps.push_back({.step = k, .seconds = 10ms});
    if (k % 100 != 99) continue;
    watched.saved(1ms);
    saves.push_back(save(0, k + 1, 1ms));
  }
  // A restore and a save of an emergency are none that were planned.
  CheckpointRecord restore = save(0, 0, 20s), emergency = save(0, 500, 20s);
  restore.action = CheckpointAction::restore;
  emergency.emergency = true;
  saves.insert(saves.begin(), restore);
  saves.push_back(emergency);
  RunTracker resumed(slow_saves(), kSteps, std::nullopt);
  resumed.take_up(steps, saves, 0);
  const double end = watched.at(6s).estimate.time_seconds.p50;
  CHECK(end == Approx(6 + 5 + 0.004).epsilon(0.005));  // 3 s a save would be 12 s more
  CHECK(resumed.at(6s).estimate.time_seconds.p50 == Approx(end));
  CHECK(resumed.steps_done() == 500);
}

TEST_CASE("saves of an earlier attempt stand behind the steps of that attempt") {
  // Attempt 0 saves behind 100 steps and dies behind 150; attempt 1 goes on from 100 and saves at
  // 200: 250 steps were made, and the last save stands at their end: one behind each 125.
  std::vector<StepRecord> steps;
  for (std::int64_t k = 0; k < 150; ++k) steps.push_back({.step = k, .seconds = 10ms});
  for (std::int64_t k = 100; k < 200; ++k)
    steps.push_back({.attempt = 1, .step = k, .seconds = 10ms});
  RunTracker resumed(slow_saves(), kSteps, std::nullopt);
  resumed.take_up(steps, {save(0, 100, 1s), save(1, 200, 1s)}, 1);
  // 8 s of steps, and 6 saves of 1 s: 1.25 to 7.5 s.
  CHECK(resumed.at(10s).estimate.time_seconds.p50 == Approx(10 + 8 + 6).epsilon(0.03));
}

TEST_CASE("steps under another plan say how far the run is, not what a step takes") {
  std::vector<StepRecord> steps;
  for (std::int64_t k = 0; k < 500; ++k)
    steps.push_back({.attempt = 0, .step = k, .seconds = 80ms});
  RunTracker resumed(slow_saves(), kSteps, std::nullopt);
  resumed.take_up(steps, {save(0, 500, 20s)}, 0, 1);
  CHECK(resumed.steps_done() == 500);
  const RunStatus& status = resumed.at(40s);
  CHECK(status.step == Seconds{0});
  CHECK(status.estimate.step.count() == Approx(0.010).epsilon(0.01));
  CHECK(resumed.longest_step().count() == Approx(0.010));
}

}  // namespace
}  // namespace reckon
