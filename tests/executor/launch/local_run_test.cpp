#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "executor/launch/local/job.h"
#include "executor/launch/local/run.h"
#include "executor/launch/run_folder.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "support/plans.h"
#include "support/text.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// A worker that is a script: $FIRST is the step that the newest checkpoint holds, and
/// `checkpoint STEP` makes one (as far as the watcher looks: it has a manifest).
fs::path worker_script(const test::RunFolder& d, const std::string& body) {
  RunRecord run;
  run.scenario = "round";
  run.started = RunClock::starting_now().text();
  std::ofstream(d.path() / "run-record") << to_line(run);
  ::setenv("RUN_RECORD", (d.path() / "run-record").c_str(), 1);
  const fs::path file = d.path() / "worker.sh";
  std::ofstream(file) << R"(#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in
    --out) OUT=$2 ;; --rank) RANK=$2 ;; --attempt) ATTEMPT=$2 ;;
  esac
  shift
done
say() { echo "$*" >&$RECKON_PROGRESS_FD; }
checkpoint() {
  D=$OUT/checkpoints/step-$(printf %012d $1); mkdir -p $D; [ $RANK = 0 ] && : > $D/manifest.json
}
FIRST=$(ls -d $OUT/checkpoints/step-* 2>/dev/null | tail -1 | sed 's/.*step-0*//')
FIRST=${FIRST:-0}
[ $RANK = 0 ] && [ $ATTEMPT = 0 ] && cat "$RUN_RECORD" >> $OUT/measurements.jsonl
)" << body << '\n';
  ::chmod(file.c_str(), 0755);
  return file;
}

struct Watched {
  RunEnd end;
  std::vector<std::string> messages;
  std::vector<std::string> output;
  Measurements measured;
};

/// Two workers of a plan with 20 steps that a forecast thinks take 10 ms each.
Watched run_script(const test::RunFolder& d, const std::string& body,
                   const std::function<StopRequest()>& stop = {}, bool resume = false,
                   bool asynchronous = false) {
  // With servers on the first worker's host there is a third process.
  Plan plan = test::make_round_plan(
      test::small_mlp(),
      asynchronous ? StrategyKind::parameter_server : StrategyKind::multi_worker_mirrored, 2);
  if (asynchronous) plan.jobs.front().strategy.servers->synchronous = false;
  plan.jobs.front().steps = 20;
  Forecast forecast;
  forecast.scenario = "round";
  forecast.steps = 20;
  forecast.step.step = 10ms;
  forecast.times_seconds = {0.18, 0.2, 0.22};
  forecast.step_factors = {0.9, 1, 1.1};
  forecast.start_seconds = {0, 0, 0};
  LocalRunOptions options;
  options.directory.root = d.path() / "run";
  options.worker = worker_script(d, body);
  options.arguments = {"plan.yaml", "--out", options.directory.root.string()};
  options.retry = {3, 10ms, 40ms, false};
  options.resume = resume;
  Watched w;
  RunObserver observer;
  observer.message = [&](const std::string& text) { w.messages.push_back(text); };
  observer.output = [&](std::string_view process, std::string_view line) {
    w.output.push_back(std::string(process) + ": " + std::string(line));
  };
  w.end = run_locally(plan, forecast, options, observer, stop);
  w.measured = read_measurement_log(options.directory.measurements()).value();
  return w;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

constexpr const char* kTrain =
    "i=$FIRST; while [ $i -lt 20 ]; do say $i done 0.02 64 0.5; i=$((i+1)); done\n";

TEST_CASE("a rank that is slow beyond its kind is named, once") {
  const test::RunFolder d;
  const Watched w = run_script(d,
                               "OWN=0.01; [ $RANK = 1 ] && OWN=0.019\n"
                               "i=0; while [ $i -lt 20 ]; do say $i done 0.02 64 0.5 own=$OWN; "
                               "i=$((i+1)); done; sleep 0.3\n");
  CHECK(w.end.end.verdict == Verdict::finished);
  const std::string wanted =
      "rank 1 is slow: it takes 19.0 ms for its own part of a step, 1.9 times what the other rank "
      "like it takes";
  CHECK(std::ranges::count(w.messages, wanted) == 1);
  CHECK(w.messages.size() == 1);
}

TEST_CASE("a run that finishes says so, with its pace against the forecast") {
  const test::RunFolder d;
  const Watched w = run_script(d, std::string("echo hello from $RANK\n") + kTrain);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.exit_code == 0);
  CHECK(w.end.status.steps_done == 20);
  CHECK(w.end.status.step == 20ms);
  CHECK(w.end.status.loss == 0.5);
  CHECK(w.end.status.samples_per_second.v == Approx(3200));  // 64 / 20 ms
  CHECK(w.end.status.estimate.step.count() == Approx(0.02).epsilon(0.05));
  CHECK(w.output.size() == 2);
  REQUIRE(w.measured.ends.size() == 1);
  CHECK(w.measured.ends[0].finished);
  CHECK(fs::exists(d.path() / "run" / "logs" / "rank-1.log"));
}

TEST_CASE("a killed rank is recorded with what it cost, and the job goes on from its checkpoint") {
  const test::RunFolder d;
  const Watched w = run_script(
      d, std::string("if [ $ATTEMPT = 0 ]; then\n"
                     "  if [ $RANK = 0 ]; then\n"
                     "    for i in 0 1 2 3 4; do say $i done 0.02 64 0.5; done; checkpoint 3\n"
                     "    : > $OUT/ready; exec sleep 60\n"
                     "  fi\n"
                     "  while [ ! -e $OUT/ready ]; do sleep 0.01; done; kill -9 $$\n"
                     "fi\n"
                     "echo from $FIRST\n") +
             kTrain);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 2);
  REQUIRE(w.measured.interruptions.size() == 1);
  const InterruptionRecord& lost = w.measured.interruptions[0];
  CHECK(lost.cause == Interruption::failure);
  CHECK(lost.rank == 1);
  CHECK(lost.lost_steps == 2);  // 5 done, 3 in the checkpoint
  CHECK(lost.lost_work.count() == Approx(0.04));
  CHECK(lost.detail == "rank 1 was killed by signal 9 (Killed)");
  REQUIRE(w.messages.size() == 1);
  CHECK(w.messages[0] ==
        "rank 1 was killed by signal 9 (Killed): 2 steps lost, restarting in 10.0 ms");
  std::vector<std::string> output = w.output;
  std::sort(output.begin(), output.end());  // ranks start side by side
  CHECK(output == std::vector<std::string>{"rank 0: from 3", "rank 1: from 3"});
  CHECK(w.end.status.interruptions == 1);
}

TEST_CASE("a run that was stopped is gone on with, and only when that is asked for") {
  const test::RunFolder d;
  const std::string script =
      "trap 'checkpoint 7; exit 75' TERM\n"
      "if [ $FIRST = 0 ]; then say 6 done 0.02 64 0.5; : > $OUT/ready-$RANK; sleep 60 & wait; fi\n";
  const auto stop = [&] {
    const fs::path run = d.path() / "run";
    return fs::exists(run / "ready-0") && fs::exists(run / "ready-1") ? StopRequest::graceful
                                                                      : StopRequest::none;
  };
  const Watched first = run_script(d, script + kTrain, stop);
  CHECK(first.end.end.exit_code == 75);
  CHECK(first.end.checkpoint == 7);
  const auto again = [&] { run_script(d, script + kTrain); };
  CHECK(test::contains(message_of(again), "holds a run already; --resume goes on with it"));
  const Watched second = run_script(d, script + kTrain, {}, true);
  CHECK(second.end.end.verdict == Verdict::finished);
  REQUIRE(second.measured.ends.size() == 2);
  CHECK(!second.measured.ends[0].finished);
  CHECK(second.measured.ends[1].attempt == 1);  // starts are counted on
}

TEST_CASE("where there is no run there is nothing to resume") {
  const test::RunFolder d;
  CHECK(test::contains(message_of([&] { run_script(d, "exit 0", {}, true); }),
                       "holds no run to resume"));
}

TEST_CASE("a second run in the directory of a first is refused while that one lives") {
  const test::RunFolder d;
  fs::create_directories(d.path() / "run");
  const RunLock lock(d.path() / "run");
  CHECK(test::contains(message_of([&] { run_script(d, "exit 0"); }), "is in use by process"));
}

TEST_CASE("workers keep the lock of a run whose watcher is gone") {
  const test::RunFolder d;
  // The lock is passed on as descriptor; the watcher's own copy is closed.
  {
    fs::create_directories(d.path() / "run");
    LocalJob job;
    job.worker = worker_script(d, "exec sleep 60");
    auto lock = std::make_unique<RunLock>(d.path() / "run");
    job.lock = lock->descriptor();
    PlannedStrategy one;
    const Socket rendezvous = local_rendezvous();
    const auto specs = processes_of(one, job, 0, rendezvous);
    ChildProcess child(specs.at(0));
    lock.reset();
    CHECK(test::contains(message_of([&] { RunLock second(d.path() / "run"); }), "is in use"));
    child.signal(SIGKILL);
    for (int k = 0; k < 500 && !child.poll_end(); ++k) ::usleep(10'000);
  }
  // What the script had started may live a little longer.
  const auto is_free = [&] {
    return message_of([&] { RunLock second(d.path() / "run"); }).empty();
  };
  for (int k = 0; k < 500 && !is_free(); ++k) ::usleep(10'000);
  CHECK(is_free());
}

TEST_CASE("a log that cannot be written is an error at the start, and a message later") {
  const test::RunFolder d;
  const fs::path logs = d.path() / "run" / "logs";
  fs::create_directories(logs / "rank-1.log");
  CHECK(test::contains(message_of([&] { run_script(d, "exit 0"); }), "rank-1.log: Is a directory"));
  fs::remove_all(d.path() / "run");
  fs::create_directories(logs);
  fs::create_symlink("/dev/full", logs / "rank-1.log");
  const Watched w = run_script(d, std::string("echo one; echo two\n") + kTrain);
  CHECK(w.end.end.verdict == Verdict::finished);
  REQUIRE(w.messages.size() == 1);
  CHECK(test::contains(w.messages[0], "rank-1.log: No space left on device; it ends here"));
}

TEST_CASE("steps of all workers are lost that take steps of their own") {
  const test::RunFolder d;
  const fs::path set = set_directory(d.path() / "run" / "checkpoints", 4);
  fs::create_directories(set);
  write_shard(shard_file(set, 0), {.step = 4, .counters = {{"step", 4}, {steps_counter(1), 6}}},
              {});
  std::ofstream(set / "manifest.json") << "{}";
  const Watched w = run_script(d, R"(
[ $ATTEMPT = 0 ] || exit 0
if [ $RANK = 1 ]; then say 9 done 0.5 32 1; sleep 60; fi
if [ $RANK = 2 ]; then sleep 60; fi
say 4 done 0.5 32 1
say 5 done 0.5 32 1
sleep 0.5
exit 3)",
                               {}, false, true);
  CHECK(w.end.end.verdict == Verdict::finished);
  REQUIRE(w.measured.interruptions.size() == 1);
  // Rank 0 had done 6 of which 4 were saved, rank 1 had done 10, and 6: on average 3.
  CHECK(w.measured.interruptions[0].lost_steps == 3);
  CHECK(w.measured.interruptions[0].lost_work == 1500ms);
}

TEST_CASE("workers report where they are, parameter servers do not") {
  PlannedStrategy strategy;
  strategy.kind = StrategyKind::parameter_server;
  strategy.workers = 2;
  strategy.servers = ParameterServers{.count = 1};
  const auto specs = processes_of(strategy, {}, 0, local_rendezvous());
  REQUIRE(specs.size() == 3);
  CHECK(specs[1].reports);
  CHECK(!specs[2].reports);
}

TEST_CASE("parameter servers without nodes of their own are one process beside the workers") {
  PlannedStrategy strategy;
  strategy.kind = StrategyKind::parameter_server;
  strategy.workers = 2;
  strategy.servers.emplace();
  const auto specs = processes_of(strategy, {}, 0, local_rendezvous());
  REQUIRE(specs.size() == 3);
  CHECK(specs[2].name == "rank 2 (server 0)");
  strategy.servers.reset();
  CHECK(server_processes(strategy) == 0);
}

TEST_CASE("processes meet at a port that is listened at before they are started") {
  PlannedStrategy strategy;
  strategy.workers = 2;
  const Socket rendezvous = local_rendezvous();
  const auto specs = processes_of(strategy, {}, 0, rendezvous);
  const std::pair<std::string, int> inherited{RunEnvironment::kRendezvousVariable, rendezvous.fd()};
  CHECK(std::ranges::count(specs.at(0).inherited, inherited) == 1);
  CHECK(specs.at(1).inherited.empty());
  CHECK(std::ranges::count(specs.at(1).command, text(rendezvous.local())) == 1);
  // Nobody else can have it.
  CHECK_THROWS_AS(listen_on(rendezvous.local()), SocketError);
}

TEST_CASE("processes that meet are told where their secret lies, and to stay on this machine") {
  PlannedStrategy strategy;
  strategy.workers = 2;
  LocalJob job;
  job.secret = "/run/job.secret";
  const auto told = [](const ProcessSpec& spec, const std::string& name) -> std::string {
    for (const auto& [variable, value] : spec.environment)
      if (variable == name) return value;
    return "";
  };
  ::unsetenv("NCCL_SOCKET_IFNAME");
  for (const ProcessSpec& spec : processes_of(strategy, job, 0, local_rendezvous())) {
    const auto at = std::ranges::find(spec.command, "--secret-file");
    REQUIRE(at != spec.command.end());
    CHECK(*(at + 1) == "/run/job.secret");
    CHECK(told(spec, "NCCL_SOCKET_IFNAME") == "lo");
  }
  ::setenv("NCCL_SOCKET_IFNAME", "eth7", 1);  // the user's own
  CHECK(told(processes_of(strategy, job, 0, local_rendezvous()).at(0), "NCCL_SOCKET_IFNAME") == "");
  ::unsetenv("NCCL_SOCKET_IFNAME");
  strategy.workers = 1;
  const auto alone = processes_of(strategy, {}, 0, local_rendezvous());
  CHECK(std::ranges::count(alone.at(0).command, "--secret-file") == 0);
  CHECK(told(alone.at(0), "NCCL_SOCKET_IFNAME") == "");
}

}  // namespace
}  // namespace reckon
