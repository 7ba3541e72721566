#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "cli/background_job.h"
#include "executor/train/records/measurement_log.h"
#include "sim/base/text/shell_word.h"
#include "sim/measurement/history.h"
#include "sim/scenario/artifact/artifact.h"
#include "support/small_job.h"

// `reckon run --replan` with real processes. They train as always; only what they tell of a step's
// time is made up, 20 ms shared by the workers, so that no test hangs on this machine's pace.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr int kLateSteps = 1'000'000;  // no test trains them all

/// 64 samples a step on `workers` nodes, of which more make a step shorter.
std::string late_job(int workers) {
  return "name: late\n"
         "workload:\n"
         "  model: mlp_mnist\n"
         "  dataset: {samples: 60000, bytes_per_sample: 785B}\n"
         "  train: {steps: " +
         std::to_string(kLateSteps) +
         "}\n"
         "  precision: fp32\n"
         "  global_batch: 64\n"
         "  strategy: {kind: multi_worker_mirrored, workers: " +
         std::to_string(workers) +
         "}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n"
         "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 100Gbps, price: 1 USD/h}, "
         "nodes: " +
         std::to_string(workers) + "}\n";
}

/// The name of a worker that says that each step took 20 ms divided by the workers.
std::string telling_worker(const Workspace& w) {
  const std::string file = w.write("worker.sh", R"(#!/bin/bash
for ((k = 1; k <= $#; k++)); do [ "${!k}" = --workers ] && n=$((k + 1)) && workers=${!n}; done
seconds=$(awk "BEGIN {print 0.02 / $workers}")
exec {told}> >(exec sed -u -E "s/^([0-9]+ done) [^ ]+/\1 $seconds/" >&$RECKON_PROGRESS_FD)
export RECKON_PROGRESS_FD=$told
exec ')" RECKON_BINARY_DIR R"(/bin/reckon-worker' "$@"
)");
  ::chmod(file.c_str(), 0755);
  return "env RECKON_WORKER=" + file + " ";
}

Measurements late_records(const Workspace& w, const std::string& out) {
  const auto file = w.path(out) / "measurements.jsonl";
  return std::filesystem::exists(file) ? read_measurement_log(file).value() : Measurements{};
}

const std::string kLateOptions = " --replications 20 --hang 10min";

/// The job is held in a step until something is decided, and goes on then.
bool waits_for_decision(const Workspace& w, BackgroundJob& job, const std::string& out) {
  if (!job.wait_for([&] { return late_records(w, out).steps.size() > 40; })) return false;
  const auto held = job.workers();
  for (const pid_t worker : held) ::kill(worker, SIGSTOP);
  const bool decided = job.wait_for([&] { return !late_records(w, out).decisions.empty(); });
  for (const pid_t worker : held) ::kill(worker, SIGCONT);
  return decided;
}

std::string plan_of(const Workspace& w, const std::string& run) {
  const auto read = read_artifact(read_all(w.path(run) / "plan.reckon"), run);
  REQUIRE(read);
  return plan_identity(read->artifact.plan);
}

/// Of rank 0, whose records are whole when it has ended.
std::int64_t steps_of_attempt(const Measurements& all, std::int64_t attempt) {
  return std::ranges::count_if(
      all.steps, [&](const StepRecord& s) { return s.rank == 0 && s.attempt == attempt; });
}

/// Some steps of so many workers are done.
bool has_trained_with(const Workspace& w, int workers) {
  const Measurements all = late_records(w, "run");
  return !all.runs.empty() && all.runs.back().workers == workers && !all.steps.empty() &&
         all.steps.back().attempt == all.runs.back().attempt;
}

}  // namespace

TEST_CASE("a run that will be late says what helps, and --replan auto goes on so") {
  const Workspace w;
  w.write("job.yaml", late_job(1));
  const std::string worker = telling_worker(w);

  SECTION("auto: behind a checkpoint, with one more worker, also when it is resumed") {
    // A million steps of 20 ms: 5,000 s too late. Of two workers 10 ms: in time.
    const std::string seeded = " --seed 7" + kLateOptions;
    BackgroundJob job(w, "job.yaml", "run", "--deadline 15000s --replan auto" + seeded, worker);
    REQUIRE(waits_for_decision(w, job, "run"));
    REQUIRE(job.wait_for([&] { return has_trained_with(w, 2); }));
    job.signal(SIGTERM);
    CHECK(job.code() == 75);
    INFO(job.errors());
    const Measurements all = late_records(w, "run");
    REQUIRE(all.decisions.size() == 1);
    const DecisionRecord& decision = all.decisions.front();
    CHECK(decision.applied);
    CHECK(decision.what.starts_with("one more worker"));
    CHECK(contains(job.errors(), " to miss "));
    CHECK(contains(job.errors(), decision.what + " from the next checkpoint: "));
    CHECK(contains(job.errors(), "the run goes on with " + decision.what));
    CHECK(decision.kept_miss > 0.5);
    REQUIRE(decision.miss);
    CHECK(*decision.miss <= decision.kept_miss / 2);
    CHECK(decision.kept_p50.count() > 15000);
    REQUIRE(decision.p50);
    CHECK(decision.p50->count() < 15000);
    CHECK(decision.cost);

    // One part with one worker, one with two, and no step twice.
    REQUIRE(all.runs.size() == 2);
    CHECK(all.runs[0].workers == 1);
    CHECK(all.runs[1].workers == 2);
    CHECK(all.runs[0].global_batch == all.runs[1].global_batch);
    CHECK(all.runs[0].plan_digest != all.runs[1].plan_digest);
    REQUIRE(all.ends.size() == 2);
    CHECK(!all.ends[0].finished);
    CHECK(all.ends[0].detail == "goes on with " + decision.what);
    CHECK(all.runs[1].first_step == steps_of_attempt(all, 0));
    CHECK(all.interruptions.empty());
    CHECK(contains(read_all(w.path(".data-home") / "reckon" / "history.jsonl"),
                   "\"record\":\"decision\""));

    // The same command goes on under the plan that was decided.
    BackgroundJob again(w, "job.yaml", "run", "--resume --deadline 15000s --replan off" + seeded,
                        worker);
    REQUIRE(again.wait_for([&] { return late_records(w, "run").runs.size() == 3; }));
    again.signal(SIGTERM);
    CHECK(again.code() == 75);
    const Measurements resumed = late_records(w, "run");
    CHECK(resumed.runs[2].workers == 2);
    CHECK(resumed.runs[2].plan_digest == resumed.runs[1].plan_digest);

    // Of another plan the decision is none, and that is told.
    BackgroundJob another(w, "job.yaml", "run",
                          "--resume --replan off --set workload.checkpoint.interval=30s" + seeded,
                          worker);
    REQUIRE(another.wait_for([&] { return late_records(w, "run").runs.size() == 4; }));
    another.signal(SIGTERM);
    CHECK(another.code() == 75);
    CHECK(late_records(w, "run").runs[3].workers == 1);
    CHECK(contains(another.errors(),
                   "the run went on with " + decision.what + ", of a plan with other settings"));
  }
  SECTION("auto: a file that was changed for another run is not taken for this run's") {
    BackgroundJob job(w, "job.yaml", "run", "--deadline 15000s --replan auto" + kLateOptions,
                      worker);
    REQUIRE(job.wait_for([&] { return !job.workers().empty(); }));
    const auto held = job.workers();
    for (const pid_t one : held) ::kill(one, SIGSTOP);
    w.write("job.yaml", late_job(3));
    for (const pid_t one : held) ::kill(one, SIGCONT);
    const std::string word = "job.yaml makes another plan by now than the run has";
    REQUIRE(job.wait_for([&] { return contains(job.errors(), word); }));
    CHECK(late_records(w, "run").decisions.empty());
    w.write("job.yaml", late_job(1));
    REQUIRE(job.wait_for([&] { return has_trained_with(w, 2); }));
    job.signal(SIGTERM);
    CHECK(job.code() == 75);
    CHECK(late_records(w, "run").decisions.size() == 1);
  }
  SECTION("a limit that nothing helps to keep: no end is recorded of changes that there are not") {
    BackgroundJob job(w, "job.yaml", "run", "--deadline 60s" + kLateOptions, worker);
    REQUIRE(waits_for_decision(w, job, "run"));
    job.signal(SIGTERM);
    CHECK(job.code() == 75);
    CHECK(contains(job.errors(), "no other number of workers and no other layout helps"));
    const Measurements all = late_records(w, "run");
    REQUIRE(all.decisions.size() == 1);
    CHECK(all.decisions.front().kept_miss > 0.5);
    CHECK(!all.decisions.front().miss);
    CHECK(!all.decisions.front().p50);
  }
  SECTION("ask: the line tells the command, which goes on so") {
    BackgroundJob job(w, "job.yaml", "run", "--deadline 15000s" + kLateOptions, worker);
    REQUIRE(waits_for_decision(w, job, "run"));
    job.signal(SIGTERM);
    CHECK(job.code() == 75);
    INFO(job.errors());
    const Measurements first = late_records(w, "run");
    REQUIRE(first.decisions.size() == 1);
    CHECK(!first.decisions.front().applied);
    CHECK(first.runs.size() == 1);

    const std::string before = plan_of(w, "run");
    std::string changes = "--resume";
    for (const std::string& change : first.decisions.front().changes)
      changes += " --set " + shell_word(change);
    CHECK(contains(job.errors(),
                   "take it: Ctrl-C, then reckon run job.yaml --out run --deadline 15000s "
                   "--replications 20 --hang 10min " +
                       changes + "\n"));
    BackgroundJob other(w, "job.yaml", "run", changes + " --replan off" + kLateOptions, worker);
    REQUIRE(other.wait_for([&] { return has_trained_with(w, 2); }));
    other.signal(SIGTERM);
    CHECK(other.code() == 75);
    CHECK(late_records(w, "run").runs.at(1).first_step == steps_of_attempt(first, 0));

    // Whatever the user took, its end has been forecast: of both plans.
    const auto history = read_all(w.path(".data-home") / "reckon" / "history.jsonl");
    std::vector<std::string> decided;
    for (const HistoryRecord& r : parse_history(history).records)
      if (r.kind == HistoryRecord::Kind::decision) decided.push_back(r.plan);
    REQUIRE(decided.size() == 2);
    CHECK(decided[0] == before);
    CHECK(decided[1] == plan_of(w, "run"));
    CHECK(decided[0] != decided[1]);
  }
}

TEST_CASE("other words of replan are none, and a run in a cluster is changed when it is resumed") {
  const Workspace w;
  w.write("job.yaml", late_job(1));
  CHECK(w.run("run job.yaml --replan perhaps").code == 2);
  const Output changed =
      w.run("run --on kubernetes --attach late --set cluster.pools.here.nodes=2");
  CHECK(changed.code == 2);
  CHECK(contains(changed.err, "--attach goes on under the plan as it is"));
}
