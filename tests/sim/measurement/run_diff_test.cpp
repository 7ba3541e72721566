#include <catch2/catch.hpp>

#include "sim/measurement/run/diff.h"

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

/// As today's files: 2 nodes at 3 USD/h, of which half an hour at least is paid for, and 1 USD/h
/// for the cluster. Two assumptions: one of the start, one of the step.
std::string priced_forecast() {
  std::string text = kForecast;
  text.replace(text.find("\"input_seconds\":0.1"), 19,
               "\"input_seconds\":0.1,\"exposed_input_seconds\":0.05,"
               "\"update_seconds\":0.15");
  text.insert(text.find("\"goodput\""), R"json(
 "cost_usd":{"mean":0.05,"p5":0.04,"p50":0.05,"p95":0.06},
 "node_hours":{"cpu":0.0139},
 "cost_breakdown_usd":{"accelerators":0,"machines":0.04,"storage":0,"network":0,
                       "management":0.01,"idle":0},
 "rates":{"pools":[{"pool":"cpu","nodes":2,"machine_usd_per_hour":3,
                    "accelerators_usd_per_hour":0}],
          "management_usd_per_hour":1,"storage_usd_per_hour":0,
          "granularity_seconds":1,"minimum_seconds":0},
 "assumptions":[
  {"what":"start of the framework","value":"5.00 s (2.50 s .. 10.0 s)","source":"a book",
   "key":"job_start.framework_start","unit":"s","median":5,"low":2.5,"high":10,
   "effects_seconds":{"initialization":7.5},"effects_usd":{"machines":0.0125}},
  {"what":"speed of a vCPU","value":"3 GFLOP/s (2 .. 4)","source":"a fit",
   "key":"pools.cpu.cpu_flops_per_vcpu","unit":"FLOP/s","median":3e9,"low":2e9,"high":4e9,
   "effects_seconds":{"training":-11,"step.compute":-1.125},
   "effects_usd":{"machines":-0.02}}],)json");
  return text;
}

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
  CHECK(diff->within_interval());
  CHECK(span_of(*diff, "step").run == Seconds{2});  // the first of a start is left out
  CHECK(span_of(*diff, "step").error() == 0.0);
  CHECK(span_of(*diff, "step.compute").run == Seconds{1.5});
  CHECK(span_of(*diff, "initialization").run.count() == Approx(5));
  CHECK(span_of(*diff, "time").run == Seconds{27});
  CHECK(!span_of(*diff, "lost_work").error());
}

TEST_CASE("what a layout waits for lies beside what was forecast of it") {
  std::string text = kForecast;
  text.replace(
      text.find("\"input_seconds\":0.1"), 19,
      "\"input_seconds\":0.1,\"bubble_seconds\":0.2,\"exposed_seconds\":{\"gradients\":0.1,"
      "\"parameters\":0,\"tensor\":0.25,\"context\":0,\"expert\":0,\"pipeline\":0.15}");
  Measurements run = run_of(5, 2);
  const auto plain = diff_run(*parse_forecast("f.json", text), run, "run");
  REQUIRE(plain);
  for (const DiffSpan& s : plain->spans) CHECK(s.name.find("waits") == std::string::npos);
  for (StepRecord& s : run.steps)
    s.waits = {.tensor = Seconds{0.5}, .pipeline = Seconds{0.05}, .bubble = Seconds{0.25}};
  const auto diff = diff_run(*parse_forecast("f.json", text), run, "run");
  REQUIRE(diff);
  CHECK(span_of(*diff, "step.waits.gradients").forecast == Seconds{0.1});
  CHECK(span_of(*diff, "step.waits.tensor").error() == Approx(-0.5));
  CHECK(span_of(*diff, "step.waits.stages").forecast.count() == Approx(0.35));
  CHECK(span_of(*diff, "step.waits.stages").run.count() == Approx(0.3));
  for (const DiffSpan& s : diff->spans) CHECK(s.name != "step.waits.context");
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

TEST_CASE("evaluations are training, as in a forecast, and one that was made again counts once") {
  std::string text = kForecast;
  text.insert(text.find("\"goodput\""),
              "\"goodput_range\":{\"mean\":0.8,\"p5\":0.7,\"p50\":0.8,\"p95\":0.9},");
  Measurements run = run_of(5, 2);
  run.ends.back().at += Seconds{6};
  const Seconds end = run.ends.back().at;
  run.evaluations = {{.step = 10, .at = end - Seconds{3}, .seconds = Seconds{2}},
                     {.attempt = 1, .step = 10, .at = end, .seconds = Seconds{3}},
                     {.rank = 1, .step = 10, .at = end, .seconds = Seconds{3}}};
  const auto diff = diff_run(*parse_forecast("f.json", text), run, "run");
  REQUIRE(diff);
  CHECK(span_of(*diff, "training").run.count() == Approx(22 + 3));
  CHECK(diff->goodput->run == Approx(25.0 / 33));
  CHECK(span_of(*diff, "other").run.count() == Approx(3));
}

TEST_CASE("the time between a stop and the start that resumes a run is not the run's") {
  std::string text = priced_forecast();
  text.insert(text.find("\"goodput\""),
              "\"goodput_range\":{\"mean\":0.8,\"p5\":0.7,\"p50\":0.8,\"p95\":0.9},");
  const auto forecast = parse_forecast("f.json", text);
  REQUIRE(forecast);
  const Measurements whole = run_of(5, 2);
  Measurements resumed = whole;  // stopped at 13 s, behind 3 steps; resumed 100 s later
  resumed.runs.push_back(resumed.runs[0]);
  resumed.runs[1].attempt = 1;
  resumed.runs[1].at = Seconds{113};
  for (std::size_t k = 3; k < resumed.steps.size(); ++k) {
    resumed.steps[k].attempt = 1;
    resumed.steps[k].at += Seconds{100};
  }
  resumed.ends.back().at += Seconds{100};
  resumed.ends.back().attempt = 1;
  EndRecord stop;
  stop.at = Seconds{13};
  resumed.ends.insert(resumed.ends.begin(), stop);
  const auto diff = diff_run(*forecast, resumed, "run"), same = diff_run(*forecast, whole, "run");
  REQUIRE(diff);
  CHECK(diff->paused == Seconds{100});
  CHECK(same->paused == Seconds{0});
  CHECK(diff->time.run == Approx(27));
  CHECK(diff->within_interval());
  CHECK(diff->goodput->run == Approx(same->goodput->run));
  CHECK(span_of(*diff, "waiting").run.count() == Approx(0).margin(1e-9));
  CHECK(span_of(*diff, "other").run.count() == Approx(0).margin(1e-9));
  CHECK(diff->cost_usd->run == Approx(same->cost_usd->run));
}

TEST_CASE("the causes of a difference are told with their numbers, the largest first") {
  const auto forecast = parse_forecast("f.json", kForecast);
  const auto diff = diff_run(*forecast, run_of(1, 4), "run");  // 1 + 11 * 4 = 45 s
  REQUIRE(diff);
  CHECK(!diff->within_interval());
  std::vector<std::string> texts;
  for (const DiffCause& c : diff->causes) texts.push_back(c.text);
  CHECK(texts ==
        std::vector<std::string>{
            "training: 24.0 s more than the forecast's 20.0 s; a step took 4.00 s, forecast 2.00 s",
            "step.compute: 1.50 s more a step than the forecast's 1.50 s",
            "step.other: 1.00 s more a step than the forecast's 0 s",
            "step.exposed_communication: 500 ms less a step than the forecast's 500 ms",
            "initialization: 4.00 s less than the forecast's 5.00 s"});
  CHECK_FALSE(diff->names_assumptions);  // an older file does not say what they act on
  CHECK(span_of(*diff, "step").error() == Approx(-0.5));  // forecast / run - 1
}

const DiffCause& cause_of(const RunDiff& diff, const std::string& row) {
  for (const DiffCause& c : diff.causes)
    if (c.row == row) return c;
  FAIL("no cause " << row);
  return diff.causes.front();
}

TEST_CASE("the parts of a step are means and add up to it, on both sides") {
  const auto forecast = parse_forecast("f.json", priced_forecast());
  REQUIRE(forecast);
  Measurements run = run_of(5, 2);
  for (StepRecord& s : run.steps) s.update = Seconds{0.2};
  run.steps[4].update = Seconds{1.1};  // a hiccup: the mean has it, the median would not
  const auto diff = diff_run(*forecast, run, "run");
  REQUIRE(diff);
  run.steps[5].seconds = Seconds{11};
  const auto hiccup = diff_run(*forecast, run, "run");
  CHECK(span_of(*hiccup, "step").run.count() == Approx(3));  // (8 * 2 + 11) / 9
  CHECK(span_of(*hiccup, "step.median").run.count() == Approx(2));
  CHECK(span_of(*diff, "step.update").forecast == Seconds{0.15});
  CHECK(span_of(*diff, "step.update").run.count() == Approx(0.3));  // (8 * 0.2 + 1.1) / 9
  CHECK(span_of(*diff, "step.input").forecast == Seconds{0.05});    // what is waited for
  CHECK(span_of(*diff, "step.other").run.count() == Approx(2 - 1.5 - 0.3));
  Seconds said{}, took{};
  for (const StepPart& part : kStepParts) {
    said += span_of(*diff, std::string(part.name)).forecast;
    took += span_of(*diff, std::string(part.name)).run;
  }
  CHECK(said.count() == Approx(span_of(*diff, "step").forecast.count()));
  CHECK(took.count() == Approx(span_of(*diff, "step").run.count()));
}

TEST_CASE("the rows of a diff add up to its time, which is a mean where they are") {
  std::string text = priced_forecast();  // median 24 s, mean 25 s
  text.replace(text.find("\"p50\":25"), 8, "\"p50\":24");
  const auto forecast = parse_forecast("f.json", text);
  REQUIRE(forecast);
  Measurements run = run_of(5, 2);
  run.ends.back().at += Seconds{3};  // nobody knows what for
  const auto diff = diff_run(*forecast, run, "run");
  REQUIRE(diff);
  Seconds said{}, took{};
  for (const DiffSpan& s : diff->spans) {
    if (s.name.starts_with("step") || s.name == "time") continue;
    said += s.forecast;
    took += s.run;
  }
  CHECK(span_of(*diff, "time").forecast == Seconds{25});
  CHECK(said.count() == Approx(25));
  CHECK(took.count() == Approx(30));
  CHECK(span_of(*diff, "other").run.count() == Approx(3));
}

TEST_CASE("a run costs what its nodes cost for as long as it took") {
  const auto forecast = parse_forecast("f.json", priced_forecast());
  REQUIRE(forecast);
  const auto diff = diff_run(*forecast, run_of(5, 2), "run");  // 27 s
  REQUIRE(diff);
  REQUIRE(diff->cost_usd);
  CHECK(diff->cost_usd->run == Approx(27.0 / 3600 * (2 * 3 + 1)));
  CHECK(diff->cost_usd->within_interval());
  CHECK(diff->within_interval());
  CHECK(diff->costs.back().name == "cost");
  CHECK(diff->costs.back().forecast_usd == 0.05);
  double parts = 0;
  for (const DiffCost& c : diff->costs)
    if (c.name != "cost") parts += c.run_usd;
  CHECK(parts == Approx(diff->cost_usd->run));
}

TEST_CASE("a run within its time but outside its cost is outside, and the bill says where") {
  std::string text = priced_forecast();
  text.replace(text.find("\"minimum_seconds\":0"), 19, "\"minimum_seconds\":60");
  const auto forecast = parse_forecast("f.json", text);
  REQUIRE(forecast);
  const auto diff = diff_run(*forecast, run_of(5, 2), "run");
  REQUIRE(diff);
  CHECK(diff->time.within_interval());
  CHECK_FALSE(diff->cost_usd->within_interval());  // 2 nodes for a minute: 0.1 USD
  CHECK_FALSE(diff->within_interval());
  CHECK(cause_of(*diff, "cost.idle")
            .text.find("0.06 USD more than the forecast's 0.00 USD; pool "
                       "cpu was paid for 0.0333 node-hours, forecast "
                       "0.0139") != std::string::npos);
}

TEST_CASE("a difference names the assumption that would explain it and where that value lies") {
  const auto forecast = parse_forecast("f.json", priced_forecast());
  REQUIRE(forecast);
  const auto diff = diff_run(*forecast, run_of(1, 4), "run");
  REQUIRE(diff);
  CHECK(diff->names_assumptions);
  // Half the speed: 1.5 s of compute at 3 GFLOP/s are 3 s at 1.5 GFLOP/s.
  const DiffCause& compute = cause_of(*diff, "step.compute");
  REQUIRE(compute.assumptions.size() == 1);
  CHECK(compute.assumptions[0].assumption.key == "pools.cpu.cpu_flops_per_vcpu");
  CHECK(compute.assumptions[0].value.value() == Approx(1.5e9));
  CHECK_FALSE(compute.assumptions[0].within_range());
  CHECK(compute.assumptions[0].percentile < 0.05);
  CHECK(to_text(compute.assumptions[0]) ==
        "speed of a vCPU: 1.50 GFLOP/s would explain it, below that range; assumed 3 GFLOP/s (2 .. "
        "4) [pools.cpu.cpu_flops_per_vcpu; a fit]");
  // 4 s less than the mean of the draws, which is 5.47 s: exp of a normal of sd ln 2 / 1.645.
  const DiffCause& start = cause_of(*diff, "initialization");
  REQUIRE(start.assumptions.size() == 1);
  CHECK(start.assumptions[0].assumption.key == "job_start.framework_start");
  CHECK(start.assumptions[0].value.value() == Approx(1.46).margin(0.02));
  // What a step's part explains is not told a second time of all training.
  CHECK(cause_of(*diff, "training").assumptions.empty());
  // Dearer for being longer.
  CHECK(cause_of(*diff, "cost.machines").assumptions.size() >= 1);
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
