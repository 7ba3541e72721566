#include <catch2/catch.hpp>

#include "sim/calibration/run_diff.h"

namespace reckon {
namespace {

/// 10 steps of 2 s, 5 s of start-up: 25 s, between 22 s and 28 s.
const char* const kForecast = R"({"schema_version":1,"command":"simulate","scenario":"mlp",
 "steps":10,"time_seconds":{"mean":25,"p5":22,"p50":25,"p95":28},
 "step":{"seconds":2,"compute_seconds":1.5,"communication_seconds":0.8,
         "exposed_communication_seconds":0.5,"input_seconds":0.1},
 "goodput":0.8,"badput":{"provisioning":0,"waiting":0,"initialization":0.2,"data_loading":0,
 "checkpoint_save":0,"checkpoint_restore":0,"lost_work":0},
 "interruptions":{"preemption":0,"maintenance":0,"failure":0}})";

/// The same run with steps of `step` s behind `start` s, the first step twice as long.
Measurements run_of(double start, double step) {
  Measurements m;
  RunRecord run;
  run.scenario = "mlp";
  run.steps = 10;
  m.runs.push_back(run);
  double now = start;
  for (int k = 0; k < 10; ++k) {
    StepRecord s;
    s.step = k;
    s.seconds = Seconds{k == 0 ? 2 * step : step};
    s.compute = Seconds{0.75 * step};
    now += s.seconds.count();
    s.at = Seconds{now};
    m.steps.push_back(s);
  }
  EndRecord end;
  end.finished = true;
  end.at = Seconds{now};
  m.ends.push_back(end);
  return m;
}

const DiffSpan& span_of(const RunDiff& diff, const std::string& name) {
  for (const DiffSpan& s : diff.spans)
    if (s.name == name) return s;
  FAIL("no span " << name);
  return diff.spans.front();
}

TEST_CASE("a run that went as forecast lies within the interval") {
  const auto forecast = parse_forecast("f.json", kForecast);
  REQUIRE(forecast);
  const auto diff = diff_run(*forecast, run_of(5, 2), "run");  // 5 + 11 * 2 = 27 s
  REQUIRE(diff);
  CHECK(diff->within_interval);
  CHECK(span_of(*diff, "step").run == Seconds{2});  // the first of a start is left out
  CHECK(span_of(*diff, "step").error() == 0.0);
  CHECK(span_of(*diff, "step.compute").run == Seconds{1.5});
  CHECK(span_of(*diff, "initialization").run.count() == Approx(5));
  CHECK(span_of(*diff, "time").run == Seconds{27});
  CHECK(!span_of(*diff, "lost_work").error());
}

TEST_CASE("goodput and lost work of a run lie beside what was forecast of them") {
  std::string text = kForecast;
  text.insert(text.find("\"goodput\""),
              "\"goodput_range\":{\"mean\":0.8,\"p5\":0.7,\"p50\":0.8,\"p95\":0.9},"
              "\"lost_work_seconds\":{\"mean\":1,\"p5\":0,\"p50\":1,\"p95\":2},");
  const auto forecast = parse_forecast("f.json", text);
  REQUIRE(forecast);
  Measurements run = run_of(5, 2);
  run.steps[3].input = Seconds{1.9};  // waited for
  InterruptionRecord lost;
  lost.lost_work = Seconds{1.5};
  run.interruptions = {lost, lost};
  const auto diff = diff_run(*forecast, run, "run");
  REQUIRE(diff);
  REQUIRE(diff->goodput);
  CHECK(diff->goodput->run == Approx((22 - 1.9) / 27));  // 11 * 2 s of steps in 27 s
  CHECK(diff->goodput->within_interval());
  REQUIRE(diff->lost_work_seconds);
  CHECK(diff->lost_work_seconds->run == Approx(3));
  CHECK(!diff->lost_work_seconds->within_interval());
  CHECK(!diff_run(*parse_forecast("f.json", kForecast), run, "run")->goodput);  // it did not say
}

TEST_CASE("the causes of a difference are told with their numbers, the largest first") {
  const auto forecast = parse_forecast("f.json", kForecast);
  const auto diff = diff_run(*forecast, run_of(1, 4), "run");  // 1 + 11 * 4 = 45 s
  REQUIRE(diff);
  CHECK(!diff->within_interval);
  REQUIRE(diff->causes.size() == 2);
  CHECK(diff->causes[0] ==
        "training: 24.0 s more than the forecast's 20.0 s; a step took 4.00 s, forecast 2.00 s");
  CHECK(diff->causes[1] == "initialization: 4.00 s less than the forecast's 5.00 s");
  CHECK(span_of(*diff, "step").error() == Approx(-0.5));  // forecast / run - 1
}

TEST_CASE("what cannot be compared is refused with the reason") {
  const auto forecast = parse_forecast("f.json", kForecast);
  Measurements unfinished = run_of(5, 2);
  unfinished.ends.clear();
  unfinished.runs[0].scenario = "other";
  CHECK(format(diff_run(*forecast, unfinished, "run").error()) ==
        "run: error: the run is not finished\n"
        "    go on with it: reckon run ... --resume\n"
        "run: error: the run is of scenario 'other', the forecast of 'mlp'\n");
  // A run of our worker (it has a stack) whose loss was no number before it saved anything.
  unfinished.runs[0].stack = "reckon-cpu-avx2";
  CHECK(format(diff_run(*forecast, unfinished, "run").error())
            .find("it left no checkpoint to go on from: run it again") != std::string::npos);
  unfinished.checkpoints.push_back({.action = CheckpointAction::save});
  CHECK(format(diff_run(*forecast, unfinished, "run").error()).find("--resume") !=
        std::string::npos);
  CHECK(!parse_forecast("f.json", "[]"));
  const auto missing = parse_forecast("f.json", R"({"scenario":1})");
  REQUIRE(!missing);
  CHECK(format(missing.error()).find("key /scenario is missing or of another kind") !=
        std::string::npos);
}

}  // namespace
}  // namespace reckon
