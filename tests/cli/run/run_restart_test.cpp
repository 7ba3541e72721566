#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "cli/background_job.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "support/trained_weights.h"

// `reckon run` of jobs that go on with the processes that are left: real ones, killed.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;

/// A small GPT; the pool has a node a worker and those that stand by.
std::string restart_job(const std::string& strategy, const std::string& restart, int nodes,
                        int steps) {
  return "name: stays\nworkload:\n"
         "  model: {transformer: {layers: 4, hidden: 32, heads: 4, vocabulary: 64, "
         "sequence_length: 16, positions: 16, tied_output: true}}\n"
         "  dataset: {samples: 4096, bytes_per_sample: 32B}\n"
         "  train: {steps: " +
         std::to_string(steps) +
         "}\n  precision: fp32\n  global_batch: 24\n  strategy: " + strategy +
         "\n  restart: " + restart +
         "\n  optimizer: {kind: sgd, learning_rate: 0.01, momentum: 0.9}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n  provider: on_premises\n  pools:\n"
         "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: " +
         std::to_string(nodes) + "}\n";
}

constexpr const char* kStaysRun =
    "--retries 100 --retry-delay 0s --replications 20 --checkpoint-steps 10 ";

std::vector<float> restart_weights(const Workspace& w, const std::string& out) {
  return trained_weights(w.path(out) / "model.safetensors");
}

std::vector<float> undisturbed(const Workspace& w, const std::string& file,
                               const std::string& out) {
  BackgroundJob job(w, file, out, kStaysRun);
  const int code = job.code();
  INFO(out << ": " << job.errors());
  REQUIRE(code == 0);
  return restart_weights(w, out);
}

/// Other orders of sums [tests/executor/train/zero_test.cpp].
double bound_of(int steps) { return steps * 0.01 * 10 * 24 * 0x1p-24 * 100; }

bool has_set_of(const Workspace& w, const std::string& out, std::int64_t step) {
  const auto sets = list_sets(w.path(out) / "checkpoints");
  return std::ranges::any_of(sets,
                             [&](const CheckpointSet& s) { return s.complete && s.step >= step; });
}

Measurements records_of(const Workspace& w, const std::string& out) {
  auto read = read_measurement_log(w.path(out) / "measurements.jsonl");
  REQUIRE(read);
  return std::move(*read);
}

std::size_t in_common(const std::vector<pid_t>& a, const std::vector<pid_t>& b) {
  return std::size_t(
      std::ranges::count_if(a, [&](pid_t id) { return std::ranges::find(b, id) != b.end(); }));
}

/// Kills workers of the running job when it has saved step 20, waits until it has gone on beyond
/// that and ended. Returns who was there before and behind the loss.
struct LossSeen {
  std::vector<pid_t> before, behind;
  int stood_by = 0;  // of those behind it: were started to stand by
};
LossSeen lose(const Workspace& w, BackgroundJob& job, const std::string& out, std::size_t processes,
              const std::vector<std::size_t>& killed) {
  LossSeen seen;
  REQUIRE(job.wait_for([&] {
    seen.before = job.workers();
    return has_set_of(w, out, 20) && seen.before.size() == processes;
  }));
  const std::size_t runs = records_of(w, out).runs.size();
  for (const std::size_t rank : killed) ::kill(seen.before.at(rank), SIGKILL);
  job.wait_for([&] {
    if (records_of(w, out).runs.size() <= runs) return false;
    seen.behind = job.workers();
    return true;
  });
  for (const pid_t id : seen.behind)
    seen.stood_by +=
        contains(read_all("/proc/" + std::to_string(id) + "/environ"), "RECKON_STANDS_BY=1");
  return seen;
}

}  // namespace

TEST_CASE("in place: the healthy process stays, and what peers hold is not done again") {
  const Workspace w;
  w.write("job.yaml",
          restart_job("{kind: multi_worker_mirrored, workers: 3}", "{kind: in_place}", 3, 120));
  const auto expected = undisturbed(w, "job.yaml", "straight");
  BackgroundJob job(w, "job.yaml", "run", kStaysRun);
  // Rank 0 too: the others hold the state, and who takes its place gets it from them.
  const std::size_t killed = GENERATE(0u, 2u);
  const LossSeen seen = lose(w, job, "run", 3, {killed});
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK(in_common(seen.before, seen.behind) == 2);
  const Measurements read = records_of(w, "run");
  REQUIRE(read.interruptions.size() == 1);
  CHECK(read.interruptions[0].lost_steps == 0);  // but for the one under way
  CHECK(read.runs.back().first_step >= 20);
  CHECK(read.runs.back().attempt == 1);
  CHECK((restart_weights(w, "run") == expected));
}

TEST_CASE("in place under ZeRO back to the checkpoint, of copies that are cut not: the same bits") {
  const Workspace w;
  using Killed = std::vector<std::size_t>;
  const std::string stages = "{kind: model_parallel, data: 2, pipeline: 2, micro_batch: 4}";
  const auto [strategy, ranks, killed, keeps] =
      GENERATE_COPY(table<std::string, std::size_t, Killed, bool>(
          {{"{kind: sharded, workers: 3, zero_stage: 3}", 3, {1}, false},
           {stages, 4, {1}, true},
           {stages, 4, {2, 3}, false}}));  // both that had the last stage
  INFO(strategy << " loses " << killed.size());
  w.write("job.yaml", restart_job(strategy, "{kind: in_place}", int(ranks), 60));
  const auto expected = undisturbed(w, "job.yaml", "straight");
  BackgroundJob job(w, "job.yaml", "run", kStaysRun);
  const LossSeen seen = lose(w, job, "run", ranks, killed);
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK(in_common(seen.before, seen.behind) == ranks - killed.size());
  const Measurements read = records_of(w, "run");
  REQUIRE_FALSE(read.interruptions.empty());
  if (keeps) {
    CHECK(read.interruptions[0].lost_steps == 0);
    for (const StepRecord& step : read.steps)
      if (step.attempt == 0) CHECK(step.step < read.runs.back().first_step);
  } else {
    CHECK(read.runs.back().first_step % 10 == 0);
    const InterruptionRecord& loss = read.interruptions[0];
    std::int64_t done = 0;
    for (const StepRecord& step : read.steps)
      if (step.rank == 0 && step.attempt == loss.attempt) done = std::max(done, step.step + 1);
    CHECK(loss.lost_steps == done - read.runs.back().first_step);
  }
  CHECK((restart_weights(w, "run") == expected));
}

TEST_CASE("a warm spare takes the rank of a lost process, and a new one stands by") {
  const Workspace w;
  w.write("job.yaml", restart_job("{kind: sharded, workers: 2, zero_stage: 1}",
                                  "{kind: warm_spare, spares: 1}", 3, 80));
  const auto expected = undisturbed(w, "job.yaml", "straight");
  BackgroundJob job(w, "job.yaml", "run", kStaysRun);
  const LossSeen seen = lose(w, job, "run", 3, {1});
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK(in_common(seen.before, seen.behind) == 2);
  CHECK(seen.behind.size() == 3);
  CHECK(seen.stood_by == 2);  // who took the rank, and who stands by now
  CHECK((restart_weights(w, "run") == expected));
}

TEST_CASE("an elastic run goes on with fewer ranks under a smaller layout, and grows again") {
  const auto [strategy, ranks, fewer] = GENERATE(table<std::string, std::size_t, int>(
      {{"{kind: multi_worker_mirrored, workers: 4}", 4, 3},
       {"{kind: sharded, workers: 4, zero_stage: 3, micro_batch: 2}", 4, 3},
       {"{kind: model_parallel, data: 2, pipeline: 2, micro_batch: 2, schedule: gpipe}", 4, 2},
       {"{kind: model_parallel, data: 2, tensor: 2, micro_batch: 4}", 4, 2}}));
  INFO(strategy);
  const Workspace w;
  constexpr int kSteps = 60;
  w.write("job.yaml", restart_job(strategy, "{kind: elastic, min: 1}", int(ranks), kSteps));
  BackgroundJob job(w, "job.yaml", "run", kStaysRun);
  const LossSeen seen = lose(w, job, "run", ranks, {1});
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK(in_common(seen.before, seen.behind) == ranks - 1);
  const Measurements read = records_of(w, "run");
  REQUIRE(read.runs.size() >= 3);
  CHECK(read.runs[0].workers == int(ranks));
  CHECK(read.runs[1].workers == fewer);
  CHECK(read.runs.back().workers == int(ranks));  // a new process stood by, and joined
  CHECK(read.interruptions.size() == 1);          // to grow is none
  std::map<std::int64_t, double> by_step;
  for (const StepRecord& s : read.steps) {
    CHECK(s.samples == 24);  // the whole global batch, whoever is there
    if (s.rank != 0 || !s.loss) continue;
    const auto [at, first] = by_step.try_emplace(s.step, *s.loss);
    if (!first) CHECK(at->second == Approx(*s.loss).epsilon(1e-4));  // done again
  }
  // The step whose update was behind the ranks when they lost a peer has no record.
  CHECK(by_step.size() >= kSteps - 1);
  const auto expected = undisturbed(w, "job.yaml", "straight");
  CHECK(largest_apart(restart_weights(w, "run"), expected) < bound_of(kSteps));
}

TEST_CASE("an elastic run that has lost too many waits for new processes") {
  const Workspace w;
  w.write("job.yaml", restart_job("{kind: sharded, workers: 2, zero_stage: 2}",
                                  "{kind: elastic, min: 1}", 2, 60));
  const auto expected = undisturbed(w, "job.yaml", "straight");
  BackgroundJob job(w, "job.yaml", "run", kStaysRun);
  std::vector<pid_t> workers;
  REQUIRE(job.wait_for([&] {
    workers = job.workers();
    return has_set_of(w, "run", 20) && workers.size() == 2;
  }));
  for (const pid_t id : workers) ::kill(id, SIGKILL);
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK(records_of(w, "run").runs.back().workers == 2);
  CHECK((restart_weights(w, "run") == expected));
}

TEST_CASE("a run whose processes stay is stopped and resumed like any other") {
  const Workspace w;
  w.write("job.yaml", restart_job("{kind: multi_worker_mirrored, workers: 2}",
                                  "{kind: warm_spare, spares: 1}", 3, 400));
  {
    BackgroundJob job(w, "job.yaml", "run", kStaysRun);
    REQUIRE(job.wait_for([&] { return has_set_of(w, "run", 20); }));
    job.signal(SIGTERM);
    INFO(job.errors());
    CHECK(job.code() == 75);
  }
  BackgroundJob job(w, "job.yaml", "run", std::string(kStaysRun) + "--resume");
  CHECK(job.code() == 0);
  INFO(job.errors());
  const Measurements read = records_of(w, "run");
  CHECK(read.ends.back().finished);
  CHECK(read.runs.back().first_step > 0);
}
