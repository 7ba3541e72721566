#include "executor/launch/foreign_program.h"

#include <catch2/catch.hpp>

#include "executor/launch/foreign_job.h"
#include "executor/launch/local_metrics.h"
#include "support/plans.h"

using namespace reckon;
using namespace std::chrono_literals;

namespace {

ProgressReader reader_of(std::map<std::string, std::string> metrics) {
  ContainerSpec container;
  container.metrics = std::move(metrics);
  std::vector<MetricsMistake> mistakes;
  auto reader = ProgressReader::from(container_metrics(container, mistakes));
  CHECK(mistakes.empty());
  REQUIRE(reader);
  return std::move(*reader);
}

Plan plan_of(std::int64_t steps) {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  plan.jobs.front().steps = steps;
  plan.jobs.front().global_batch = 64;
  return plan;
}

/// Records by kind, in order.
struct Heard {
  std::vector<RunRecord> runs;
  std::vector<StepRecord> steps;
  std::vector<CheckpointRecord> saves;
  void add(const ForeignProgram::Records& records) {
    for (const MeasurementRecord& r : records) {
      if (const auto* run = std::get_if<RunRecord>(&r)) runs.push_back(*run);
      if (const auto* step = std::get_if<StepRecord>(&r)) steps.push_back(*step);
      if (const auto* save = std::get_if<CheckpointRecord>(&r)) saves.push_back(*save);
    }
  }
};

}  // namespace

TEST_CASE("lines of a program become steps, each as long as the time between them") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  program.started(5s);
  heard.add(program.line(0, 12s, "loading data"));
  heard.add(program.line(0, 20s, "step 10/1000 loss 0.9"));
  CHECK(heard.steps.empty());  // how long those ten took is not known yet
  CHECK(program.steps_done() == 10);
  heard.add(program.line(0, 25s, "step 20/1000 loss 0.8"));
  // The ten before the first line are as long as the ten behind it: 5 s / 10.
  REQUIRE(heard.steps.size() == 20);
  for (std::size_t k = 0; k < 20; ++k) {
    CHECK(heard.steps[k].step == std::int64_t(k));
    CHECK(heard.steps[k].seconds == 500ms);
    CHECK(heard.steps[k].samples == 64);
    CHECK(heard.steps[k].at.count() == Approx(15 + 0.5 * double(k + 1)));
  }
  CHECK(heard.steps[9].loss == 0.9);
  CHECK(!heard.steps[10].loss);
  CHECK(heard.steps[19].loss == 0.8);
  REQUIRE(heard.runs.size() == 1);
  CHECK(heard.runs[0].first_step == 0);
  CHECK(heard.runs[0].steps == 1000);
  CHECK(heard.runs[0].at == 5s);  // its container's start
  // A line again, one of another rank, one of a process that is behind: nothing new.
  heard.add(program.line(0, 26s, "step 20/1000 loss 0.8"));
  heard.add(program.line(1, 27s, "step 30/1000 loss 0.7"));
  heard.add(program.line(0, 27s, "step 19/1000 loss 0.7"));
  heard.add(program.line(0, 27s, "step 1734567890"));  // a moment, not a step
  CHECK(heard.steps.size() == 20);
}

TEST_CASE("the program's own time of a step counts, and its steps do not begin before it does") {
  const Plan plan = plan_of(100);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  program.started(10s);
  heard.add(program.line(0, 11s, "4/100 [00:01<00:20, 300ms/step]"));
  heard.add(program.line(0, 15s, "8/100 [00:01<00:20, 200ms/step]"));
  REQUIRE(heard.steps.size() == 8);
  CHECK(heard.steps[0].seconds == 250ms);  // four in the one second that it was there
  CHECK(heard.steps[7].seconds == 200ms);  // an evaluation took the rest of the 4 s
}

TEST_CASE("where a program goes on is told by its lines, and so what an interruption cost") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  OpenInterruption open;
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "step 1"));
  for (int k = 2; k <= 50; ++k)
    heard.add(program.line(0, Seconds{double(k)}, "step " + std::to_string(k)));
  heard.add(program.end());
  CHECK(!open.open({.attempt = 0, .detail = "rank 1 was deleted"}, program.steps_done(), 1s));
  // It failed again before it said anything: that cost nothing more.
  CHECK(open.open({.attempt = 1, .detail = "again"}, program.steps_done(), 1s)->lost_steps == 0);
  program.begin(2, 60s);
  heard.add(program.line(0, 70s, "resuming"));
  heard.add(program.line(0, 71s, "step 41"));
  heard.add(program.line(0, 72s, "step 42"));
  REQUIRE(heard.runs.size() == 2);
  CHECK(heard.runs[1].attempt == 2);
  CHECK(heard.runs[1].first_step == 40);
  const auto settled = open.settle(heard.runs[1].first_step);
  REQUIRE(settled);
  CHECK(settled->lost_steps == 10);
  CHECK(settled->lost_work == 10s);
  CHECK(settled->detail == "rank 1 was deleted");
  CHECK(!open.settle(40));
}

TEST_CASE("an attempt with a single line is recorded when it ends") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 9s, "step 7"));
  heard.add(program.end());
  REQUIRE(heard.runs.size() == 1);
  CHECK(heard.runs[0].first_step == 7);
  CHECK(heard.steps.empty());
  program.begin(1, 10s);
  heard.add(program.line(0, 19s, "step 8 step time 0.5 s"));
  heard.add(program.end());
  REQUIRE(heard.steps.size() == 1);
  CHECK(heard.steps[0].step == 7);
  CHECK(heard.steps[0].seconds == 500ms);
  program.begin(2, 20s);  // and one that says nothing leaves nothing
  CHECK(program.end().empty());
  CHECK(!program.spoke());
}

TEST_CASE("saved checkpoints are told by their lines") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "step 1"));
  heard.add(program.line(0, 2s, "Saving model checkpoint to out/checkpoint-1"));
  CHECK(heard.saves.empty());  // behind the run's record
  heard.add(program.line(0, 3s, "step 2"));
  heard.add(program.line(0, 4s, "saved a checkpoint at step 2"));
  REQUIRE(heard.saves.size() == 2);
  CHECK(heard.saves[0].step == 1);
  CHECK(heard.saves[1].step == 2);
  CHECK(heard.saves[1].at == 4s);
}

TEST_CASE("lines that are JSON objects are read by their keys") {
  const ProgressReader own = reader_of({{"json", "step=global_step, loss=train.loss"}});
  const auto line = own.line(R"({"global_step": 40, "train": {"loss": 0.25}, "lr": 1e-3})");
  REQUIRE(line);
  CHECK(line->step == 40);
  CHECK(line->loss == 0.25);
  CHECK(!own.line("step 41"));  // no object
  CHECK(!own.line(R"({"epoch": 3})"));
  CHECK(!own.line(R"({"global_step": )"));
  const ProgressReader plain = reader_of({{"json", ""}, {"log", "at (?<step>[0-9]+)"}});
  CHECK(plain.line(R"({"step": "7", "samples_per_second": 12.5})")->samples_per_second == 12.5);
  CHECK(plain.line("at 9")->step == 9);
}

TEST_CASE("a page of metrics is read by the names of its series") {
  const ProgressReader reader =
      reader_of({{"prometheus", ":9090/train/metrics step=train_steps_total loss=train_loss"}});
  REQUIRE(reader.prometheus());
  CHECK(reader.prometheus()->port == 9090);
  CHECK(reader.prometheus()->path == "/train/metrics");
  const auto page = reader.page(
      "# HELP train_steps_total Steps.\n"
      "# TYPE train_steps_total counter\n"
      "train_steps_total{rank=\"0\"} 120\n"
      "train_steps_total{rank=\"1\", text=\"a } b\"} 118 1734567890\n"
      "train_loss 0.5\r\n"
      "train_loss_sum NaN\n");
  REQUIRE(page);
  CHECK(page->step == 120);
  CHECK(page->loss == 0.5);
  CHECK(!reader.page("other 1\n"));
  CHECK(!reader.page("train_steps_total{rank=\"0\n\n}\n train_steps_total\n"));
}

TEST_CASE("an expression that is none is refused with what is wrong") {
  ContainerMetrics metrics;
  metrics.log = "step (?<stepp>[0-9]+)";
  const auto reader = ProgressReader::from(metrics);
  REQUIRE(!reader);
  CHECK(reader.error().find("did you mean 'step'") != std::string::npos);
}

TEST_CASE("processes of a foreign program are told who they are, and where to keep their files") {
  Plan plan = plan_of(10);
  ContainerSpec container;
  container.command = {"train", "--job-dir", "--rank", "$(RANK)"};
  container.env = {{"DATA", "$(RECKON_JOB_DIR)/data"}, {"WORLD_SIZE", "mine"}};
  const auto directory = std::filesystem::temp_directory_path() /
                         ("reckon-foreign-" + std::to_string(::getpid())) / "job";
  const auto processes =
      processes_of(plan.jobs.front(), container, {.directory = directory, .attempt = 3});
  const auto of = [&](std::size_t k, const std::string& name) {
    for (const auto& [key, value] : processes[k].environment)
      if (key == name) return value;
    return std::string("none");
  };
  REQUIRE(processes.size() == 2);
  CHECK(processes[1].command ==
        std::vector<std::string>{"train", "--job-dir", directory.string(), "--rank", "1"});
  CHECK(of(0, "DATA") == directory.string() + "/data");
  CHECK(of(0, "WORLD_SIZE") == "mine");
  CHECK(of(1, "PET_NODE_RANK") == "1");
  CHECK(of(1, "RECKON_ATTEMPT") == "3");
  CHECK(of(0, "JAX_COORDINATOR_ADDRESS") == of(1, "JAX_COORDINATOR_ADDRESS"));
  CHECK(of(1, "TF_CONFIG").find(R"("task": {"type": "worker", "index": 1})") != std::string::npos);
  CHECK(std::filesystem::is_directory(directory));
  std::filesystem::remove_all(directory.parent_path());
}
