#include "executor/launch/foreign_program.h"

#include <catch2/catch.hpp>

#include "executor/launch/foreign_job.h"
#include "executor/launch/progress_readers.h"
#include "support/plans.h"

using namespace reckon;
using test::reader_of;
using namespace std::chrono_literals;

namespace {

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

TEST_CASE("of a Hugging Face Trainer's log its bar counts, not its numbers of steps") {
  const Plan plan = plan_of(500);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  for (const char* line : {"Map:   0%|          | 0/4040 [00:00<?, ? examples/s]",
                           "Map:  25%|##5       | 1000/4040 [00:00<00:00, 9000 examples/s]",
                           "Map: 4040/4040 [00:00<00:00, 9000 examples/s]",
                           "Loading checkpoint shards: 100%|##########| 3/3 [00:01<00:00, 2.1it/s]",
                           "***** Running training *****", "  Num examples = 4,040",
                           "  Num Epochs = 1", "  Instantaneous batch size per device = 8",
                           "  Total train batch size (w. parallel, distributed & accumulation) = 8",
                           "  Gradient Accumulation steps = 1", "  Total optimization steps = 500"})
    heard.add(program.line(0, 5s, line));
  CHECK(program.steps_done() == 0);
  CHECK(!program.spoke());
  heard.add(program.line(0, 6s, "  0%|          | 0/500 [00:00<?, ?it/s]"));
  heard.add(program.line(0, 8s, "  0%|          | 1/500 [00:02<16:38,  2.00s/it]"));
  heard.add(program.line(0, 10s, "  0%|          | 2/500 [00:04<16:36,  2.00s/it]"));
  heard.add(program.line(0, 11s, "{'loss': 3.1, 'learning_rate': 4e-05, 'epoch': 0.1}"));
  heard.add(program.line(0, 11s, " 50%|#####     | 32/63 [00:00<00:00, 64.2it/s]"));  // evaluation
  heard.add(program.line(0, 12s, "  1%|          | 3/500 [00:06<16:34,  2.00s/it]"));
  REQUIRE(heard.runs.size() == 1);
  CHECK(heard.runs[0].first_step == 0);
  REQUIRE(heard.steps.size() == 3);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(heard.steps[k].step == std::int64_t(k));
    CHECK(heard.steps[k].seconds == 2s);
  }
}

TEST_CASE("a first number that was no step is withdrawn when lines count up below it") {
  const Plan plan = plan_of(500);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "config: batch_size 8, steps: 500"));
  for (int k = 1; k <= 4; ++k)
    heard.add(program.line(0, Seconds{double(k + 1)}, "step " + std::to_string(k)));
  REQUIRE(heard.runs.size() == 1);
  CHECK(heard.runs[0].first_step == 0);
  CHECK(program.steps_done() == 4);
  REQUIRE(heard.steps.size() == 4);
  CHECK(heard.steps[3].seconds == 1s);
}

TEST_CASE("lines that come at once stand for no steps until one leaves time for them") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  for (const char* line : {"step 10", "step 20", "step 30"}) heard.add(program.line(0, 5s, line));
  CHECK(heard.steps.empty());
  heard.add(program.line(0, 15s, "step 40"));  // 30 steps in these 10 s
  REQUIRE(heard.steps.size() == 40);
  CHECK(heard.steps[39].seconds.count() == Approx(1. / 3));
  heard.add(program.line(0, 15s, "step 90"));
  CHECK(program.steps_done() == 40);
  heard.add(program.end());
  CHECK(heard.steps.size() == 40);
  CHECK(program.steps_done() == 90);
}

TEST_CASE("a bar of another length counts once it moved, if nothing surer is told") {
  const Plan plan = plan_of(500);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "40/40 [00:01<00:00, 40it/s]"));
  CHECK(!program.spoke());
  heard.add(program.line(0, 2s, "Epoch 1:   0/100 [00:00<?, ?it/s]"));
  CHECK(!program.spoke());
  heard.add(program.line(0, 4s, "Epoch 1:   4/100 [00:02<00:48, 2.00it/s]"));
  CHECK(heard.steps.size() == 4);
}

TEST_CASE("a line that says where a program goes on is no step") {
  const Plan plan = plan_of(1000);
  for (const char* line : {"Resuming from step 80", "  Continuing training from global step 80",
                           "Loading model from out/checkpoint-80."}) {
    ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
    Heard heard;
    program.begin(1, 0s);
    heard.add(program.line(0, 10s, line));
    CHECK(!program.spoke());
    heard.add(program.line(0, 20s, "step 90"));
    heard.add(program.line(0, 25s, "step 100, loading data took 0.1 s"));
    REQUIRE(heard.runs.size() == 1);
    CHECK(heard.runs[0].first_step == 80);
    REQUIRE(heard.steps.size() == 20);
    CHECK(heard.steps[0].step == 80);
    CHECK(heard.steps[0].seconds == 1s);
    CHECK(heard.saves.empty());
  }
  // What was loaded was another program's checkpoint: this one begins at 0.
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "Loading model from base/checkpoint-500"));
  for (int k = 1; k <= 3; ++k)
    heard.add(program.line(0, Seconds{double(k + 1)}, "step " + std::to_string(k)));
  REQUIRE(heard.runs.size() == 1);
  CHECK(heard.runs[0].first_step == 0);
  CHECK(heard.steps.size() == 3);
}

TEST_CASE("the newest checkpoint of the attempt before is where the next one goes on") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "step 40"));
  heard.add(program.line(0, 2s, "Saving model checkpoint to out/checkpoint-40"));
  heard.add(program.line(0, 3s, "step 50"));
  program.begin(1, 10s);
  heard.add(program.line(0, 11s, "step 40"));
  heard.add(program.line(0, 21s, "step 50"));
  REQUIRE(heard.runs.size() == 2);
  CHECK(heard.runs[1].first_step == 40);
}

TEST_CASE("checkpoints that are deleted or read are not saved") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(0, 1s, "step 1"));
  heard.add(program.line(0, 2s, "step 2"));
  heard.add(program.line(0, 3s, "Saving model checkpoint to out/checkpoint-200"));
  heard.add(program.line(0, 3s,
                         "Deleting older checkpoint [out/checkpoint-100] due to "
                         "args.save_total_limit"));
  heard.add(program.line(0, 3s, "Loading model from checkpoint-100, saved before"));
  heard.add(program.line(1, 3s, "Saving model checkpoint to out/checkpoint-200"));
  heard.add(program.line(0, 3s, "Saving model checkpoint to out/checkpoint-100"));
  heard.add(program.line(0, 4s, "Saved out/checkpoint-300, removed out/checkpoint-200"));
  REQUIRE(heard.saves.size() == 2);
  CHECK(heard.saves[0].step == 200);
  CHECK(heard.saves[1].step == 300);
}

TEST_CASE("a rank that tells of no steps does not take the word from one that does") {
  const Plan plan = plan_of(1000);
  ForeignProgram program(plan, reader_of({}), RunClock::starting_now());
  Heard heard;
  program.begin(0, 0s);
  heard.add(program.line(1, 1s, "step 10"));
  heard.add(program.line(0, 1s, "12.5 samples/s"));
  heard.add(program.line(0, 1s, "steps: 900"));  // its only one
  heard.add(program.line(1, 2s, "step 20"));
  heard.add(program.line(1, 3s, "step 30"));
  CHECK(program.steps_done() == 30);
  CHECK(heard.steps.size() == 30);
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
