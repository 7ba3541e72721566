#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <sstream>

#include "cli/run/devices_job.h"

// Workers of several ranks, one a device: real processes, which compute on CPUs where no device is
// there. What differs on devices is what computes and what sums (NCCL), not who starts whom.
using namespace reckon;
using namespace reckon::test;

namespace {

/// The two workers of a job as pods start them: one process each, which starts its ranks.
struct WorkerPair {
  WorkerPair(const Workspace& w, const std::string& options) {
    const std::string meeting = meeting_point(w);
    for (int k = 0; k < 2; ++k)
      workers.push_back(std::make_unique<ChildProcess>(
          ProcessSpec{"worker",
                      {"sh", "-c",
                       "cd '" + w.path("").string() + "' && exec " + kWorker +
                           "job.yaml --threads 1 --workers 2 --rank " + std::to_string(k) +
                           meeting + " " + options + " > worker" + std::to_string(k) + ".txt 2>&1"},
                      {},
                      {}}));
  }
  int code(std::size_t k) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!workers[k]->poll_end() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto end = workers[k]->poll_end();
    return end ? end->code + (end->signal != 0 ? 128 + end->signal : 0) : -1;
  }
  std::vector<pid_t> ranks(std::size_t k) const { return children_of(workers[k]->id()); }
  std::vector<std::unique_ptr<ChildProcess>> workers;
};

}  // namespace

TEST_CASE("two workers of two devices train what four workers of one train, to the bit") {
  const Workspace w;
  constexpr int kSteps = 20;
  w.write("four.yaml",
          devices_job("{kind: multi_worker_mirrored, workers: 4, accelerators_per_worker: 1}", 2,
                      kSteps));
  w.write("two.yaml", devices_job("{kind: multi_worker_mirrored}", 2, kSteps));
  const auto expected = devices_run(w, "four.yaml", "four");
  CHECK((devices_run(w, "two.yaml", "two") == expected));
  const Measurements read = devices_records(w, "two");
  REQUIRE(read.runs.size() == 1);
  CHECK(read.runs[0].workers == 2);
  for (int rank = 0; rank < 4; ++rank)
    CHECK(std::ranges::count(read.steps, rank, &StepRecord::rank) == kSteps);

  // As pods do it: a process a worker.
  w.write("job.yaml", devices_job("{kind: multi_worker_mirrored}", 2, kSteps));
  WorkerPair pair(w, "--out pods --checkpoint-steps 10");
  CHECK(pair.code(0) == 0);
  CHECK(pair.code(1) == 0);
  INFO(read_all(w.path("worker0.txt")) << read_all(w.path("worker1.txt")));
  CHECK((devices_weights(w, "pods") == expected));
  CHECK(contains(read_all(w.path("worker0.txt")), "step 19 loss"));
}

TEST_CASE("mirrored over the devices of one worker needs nobody else, and a layout runs as well") {
  const Workspace w;
  w.write("one.yaml", devices_job("{kind: single}", 1, 10));
  w.write("mirrored.yaml", devices_job("{kind: mirrored}", 1, 10));
  w.write("tensor.yaml",
          devices_job("{kind: model_parallel, data: 2, tensor: 2, micro_batch: 4}", 2, 10));
  const auto expected = devices_run(w, "one.yaml", "one");
  // Other orders of sums [tests/executor/train/zero_test.cpp].
  constexpr double kBound = 10 * 0.01 * 10 * 16 * 0x1p-24 * 100;
  const auto mirrored = devices_run(w, "mirrored.yaml", "mirrored");
  CHECK(largest_apart(mirrored, expected) < kBound);
  CHECK(largest_apart(devices_run(w, "tensor.yaml", "tensor"), expected) < kBound);
  // Started by hand it has nobody to meet, and needs no secret.
  const Output alone = w.run_shell(kWorker + "mirrored.yaml --threads 1 --out alone");
  INFO(alone.out << alone.err);
  CHECK(alone.code == 0);
  CHECK((devices_weights(w, "alone") == mirrored));
}

TEST_CASE("with one of its ranks a worker is lost, and all of its ranks are started anew") {
  const Workspace w;
  const auto [strategy, keeps] = GENERATE(table<std::string, bool>(
      {{"{kind: multi_worker_mirrored}", true}, {"{kind: sharded, zero_stage: 3}", false}}));
  INFO(strategy);
  w.write("job.yaml", devices_job(strategy, 2, 120, "  restart: {kind: in_place}\n"));
  const auto expected = devices_run(w, "job.yaml", "straight");
  BackgroundJob job(w, "job.yaml", "run", kDevicesRun);
  const LostLastRank seen = lose_last_rank(w, job);
  CHECK((seen.outlives(0) && seen.outlives(1)));  // of the other worker
  CHECK_FALSE((seen.outlives(2) || seen.outlives(3)));
  const Measurements read = devices_records(w, "run");
  REQUIRE(read.interruptions.size() == 1);
  CHECK(read.interruptions[0].rank == 3);
  // Without copies it goes on from a checkpoint.
  if (keeps)
    CHECK(read.interruptions[0].lost_steps == 0);
  else
    CHECK(read.runs.back().first_step % 10 == 0);
  CHECK(contains(job.errors(), "rank 3 (worker 1) was killed by signal 9"));
  CHECK((devices_weights(w, "run") == expected));
}

TEST_CASE("a worker ends as its rank did, the others lose a peer, and all go on where they were") {
  const Workspace w;
  w.write("job.yaml", devices_job("{kind: multi_worker_mirrored}", 2, 300));
  const auto expected = devices_run(w, "job.yaml", "straight");
  {
    WorkerPair pair(w, "--out run --checkpoint-steps 10");
    REQUIRE(wait_for_that([&] { return saved(w, "run", 20) && pair.ranks(1).size() == 2; }));
    ::kill(pair.ranks(1)[1], SIGKILL);
    CHECK(pair.code(1) == 128 + SIGKILL);
    CHECK(pair.code(0) == 76);
    CHECK(contains(read_all(w.path("worker1.txt")), "rank 3 was killed by signal 9"));
  }
  {  // asked to stop all ranks of both save and end
    WorkerPair pair(w, "--out run --checkpoint-steps 10 --attempt 1");
    REQUIRE(wait_for_that([&] { return saved(w, "run", 60); }));
    ::kill(pair.workers[1]->id(), SIGTERM);
    CHECK(pair.code(1) == 75);
    CHECK(pair.code(0) == 75);
  }
  {  // its ranks do not outlive it
    WorkerPair pair(w, "--out run --checkpoint-steps 10 --attempt 2");
    REQUIRE(wait_for_that([&] { return saved(w, "run", 120) && pair.ranks(0).size() == 2; }));
    const std::vector<pid_t> ranks = pair.ranks(0);
    ::kill(pair.workers[0]->id(), SIGKILL);
    CHECK(pair.code(1) == 76);
    CHECK(wait_for_that(
        [&] { return std::ranges::none_of(ranks, [](pid_t id) { return ::kill(id, 0) == 0; }); }));
  }
  WorkerPair pair(w, "--out run --checkpoint-steps 10 --attempt 3");
  CHECK(pair.code(0) == 0);
  CHECK(pair.code(1) == 0);
  CHECK((devices_weights(w, "run") == expected));
}

TEST_CASE("parameter servers see the ranks of a worker as one, and go on with them to the bit") {
  const Workspace w;
  const auto servers_job = [](const std::string& strategy, int nodes, int steps) {
    return devices_job(strategy, nodes, steps) +
           "    - {name: servers, role: parameter_server, machine: {vcpu: 8, memory: 64GiB, "
           "network: 10Gbps}, nodes: 1}\n";
  };
  constexpr int kSteps = 120;
  w.write("job.yaml",
          servers_job("{kind: parameter_server, accelerators_per_worker: 2}", 2, kSteps));
  w.write("four.yaml",
          servers_job("{kind: parameter_server, accelerators_per_worker: 1}", 2, kSteps));
  const auto expected = devices_run(w, "job.yaml", "straight");
  {  // two workers of two ranks: other sums than of four workers, but for rounding the same
    const auto four = devices_run(w, "four.yaml", "four");
    REQUIRE(four.size() == expected.size());
    double worst = 0;
    for (std::size_t i = 0; i < four.size(); ++i)
      worst = std::max(worst, std::abs(double{four[i]} - double{expected[i]}));
    CHECK(worst < kSteps * 0.01 * 10 * 16 * 0x1p-24 * 100);
  }
  const Measurements read = devices_records(w, "straight");
  CHECK(read.runs.at(0).workers == 2);
  CHECK(read.runs.at(0).parameter_servers == 1);
  BackgroundJob job(w, "job.yaml", "run", kDevicesRun);
  std::vector<pid_t> ranks;
  REQUIRE(job.wait_for([&] {
    ranks = job.workers();
    return saved(w, "run", 20) && ranks.size() == 5;
  }));
  ::kill(ranks[3], SIGKILL);  // the second rank of the second worker, which meets no server
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK(devices_records(w, "run").interruptions.size() == 1);
  CHECK((devices_weights(w, "run") == expected));

  const std::string mode = GENERATE(as<std::string>(), "asynchronous", "synchronous");
  std::string other =
      servers_job("{kind: parameter_server, accelerators_per_worker: 2, mode: " + mode +
                      (mode == "synchronous" ? ", backup_workers: 1}" : "}"),
                  3, 30);
  other.replace(other.find("global_batch: 16"), 16,
                "global_batch: 24\n  evaluation: {every_epochs: 0.1}");
  const std::string bytes = "bytes_per_sample: 32B";
  other.replace(other.find(bytes), bytes.size(), bytes + ", validation_samples: 20");
  w.write("mode.yaml", other);
  devices_run(w, "mode.yaml", "mode");
  const Measurements steps = devices_records(w, "mode");
  for (int rank = 0; rank < 6; ++rank) {  // those of a worker take the same steps
    std::vector<std::int64_t> mine, first;
    for (const StepRecord& s : steps.steps) {
      if (s.rank == rank) mine.push_back(s.step);
      if (s.rank == rank / 2 * 2) first.push_back(s.step);
    }
    CHECK_FALSE(mine.empty());
    CHECK(mine == first);
    // Each rank has a part of the validation samples.
    const auto is_own = [&](const EvaluationRecord& e) { return e.rank == rank && e.loss; };
    CHECK(std::ranges::any_of(steps.evaluations, is_own));
  }
}

TEST_CASE("fp16 skips what overflows on all ranks alike, and goes on with the scale of the loss") {
  // The slope of a squared error is twice the error, here of one sample in four: scaled by 2^16 it
  // leaves fp16 (65,504) where the error is 2, which some of these targets are away.
  const auto half_job = [](const std::string& strategy) {
    std::string text = devices_job(strategy, 2, 120);
    const auto replace = [&](const std::string& from, const std::string& to) {
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
    };
    const std::size_t model = text.find("  model:"), train = text.find("  train:");
    text.replace(model, train - model,
                 "  model: mlp_boston_housing\n  dataset: {samples: 4040, bytes_per_sample: "
                 "112B}\n");
    replace("precision: fp32", "precision: fp16");
    replace("learning_rate: 0.01", "learning_rate: 0.0001");
    replace("global_batch: 16", "global_batch: 4");
    return text;
  };
  const Workspace w;
  const std::string strategy = GENERATE(as<std::string>(), "{kind: multi_worker_mirrored}",
                                        "{kind: sharded, zero_stage: 3}");
  INFO(strategy);
  w.write("job.yaml", half_job(strategy));
  BackgroundJob straight(w, "job.yaml", "straight", kDevicesRun);
  REQUIRE(straight.code() == 0);
  const std::string said = straight.errors();
  CHECK(contains(said,
                 " updated nothing: gradients overflow at a loss scale of 65536; it is 32768 "
                 "now"));
  const auto expected = devices_weights(w, "straight");
  CHECK(devices_records(w, "straight").runs.at(0).precision == "fp16");
  BackgroundJob job(w, "job.yaml", "run", kDevicesRun);
  for (const int rank : {1, 2}) {
    std::vector<pid_t> ranks;
    const bool there = job.wait_for([&] {
      ranks = job.workers();
      return saved(w, "run", rank * 20) && ranks.size() == 4;
    });
    if (there) ::kill(ranks[std::size_t(rank)], SIGKILL);
  }
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  CHECK_FALSE(devices_records(w, "run").interruptions.empty());
  CHECK((devices_weights(w, "run") == expected));
}

TEST_CASE("a number of processes that is neither workers nor ranks is refused with both") {
  const Workspace w;
  w.write("job.yaml", devices_job("{kind: multi_worker_mirrored}", 2, 10));
  const Output three = w.run_shell(kWorker + "job.yaml --workers 3 --rank 0" + meeting_point(w));
  CHECK(three.code == 2);
  CHECK_THAT(three.err,
             Catch::Contains("the plan has 2 workers of 2 ranks each, this job has 3 processes") &&
                 Catch::Contains("or all 4 ranks yourself"));
}
