#include <sstream>

#include <catch2/catch.hpp>

#include "cli/run/hand_started.h"

// Jobs with parameter servers whose processes are started by hand.
using namespace reckon::test;

TEST_CASE("two workers with a parameter server end with the bits of two that all-reduce") {
  const Workspace w;
  w.write("mirrored.yaml", small_plan(kRecords, "{kind: multi_worker_mirrored, workers: 2}", 2));
  const std::string mirrored =
      kWorker + "mirrored.yaml --workers 2 --threads 1 --out mirrored" + meeting_point(w);
  REQUIRE(w.run_shell(mirrored + " --rank 1 & " + mirrored + " --rank 0; code=$?; wait; exit $code")
              .code == 0);
  ServerJob job(w, 2, "synchronous");
  job.start_again("");
  const Output out = job.run();
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string bits = read_all(w.path("run/model.safetensors"));
  CHECK(!bits.empty());
  CHECK(bits == read_all(w.path("mirrored/model.safetensors")));
}

TEST_CASE("parameter servers are told apart in the measurements, and do not clip") {
  const Workspace w;
  ServerJob job(w, 1, "synchronous");
  job.start_again("--set workload.optimizer.clip_norm=1");
  Output out = w.run_shell(job.worker(0));
  CHECK(out.code == 2);
  CHECK(contains(out.err, "parameter servers do not clip gradients, and clip_norm is 1"));
  job.start_again("");
  out = job.run();
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  CHECK(contains(log, R"("strategy":"parameter_server")"));
  CHECK(contains(log, R"("parameter_servers":1)"));
  CHECK(contains(log, R"("apply_seconds":)"));
}

TEST_CASE("asynchronous workers make checkpoints, and go on from them") {
  const Workspace w;
  ServerJob job(w, 2, "asynchronous");
  job.start_again("--steps 5 --checkpoint-steps 2");
  Output out = job.run();
  CHECK(out.err == "");
  CHECK(out.code == 0);
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000000005/manifest.json")));
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000000004/manifest.json")));
  job.start_again("", 1);
  out = job.run();
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  CHECK(contains(log, R"("action":"restore")"));
  for (const std::string rank : {"0", "1"}) {
    CHECK(contains(log, R"("attempt":1,"rank":)" + rank + R"(,"step":5,)"));
    CHECK(!contains(log, R"("attempt":1,"rank":)" + rank + R"(,"step":4,)"));
  }
}

TEST_CASE("the first of asynchronous workers waits for the last one's part of the result") {
  const Workspace w;
  ServerJob job(w, 2, "asynchronous");
  // Small, so that gradients of any age leave the loss finite.
  job.start_again("--set workload.train.steps=300 --set workload.optimizer.learning_rate=1e-4");
  const Output out = w.run_shell(
      job.server() + " & " + job.worker(1) + " & slow=$!; " + job.worker(0) + " & first=$!; " +
      until_steps_of(1) + "kill -STOP $slow; " + until_first_did(299) +
      "sleep 0.3; kill -0 $first && echo waits; kill -CONT $slow; wait $first; code=$?; wait; "
      "exit $code");
  CHECK(out.err == "");
  CHECK(contains(out.out, "waits"));
  CHECK(out.code == 0);
  CHECK(std::filesystem::exists(w.path("run/model.safetensors")));
}

TEST_CASE(
    "asynchronous workers that are stopped while the first waits go on with their own steps") {
  const Workspace w;
  ServerJob job(w, 2, "asynchronous");
  // Small, so that gradients of any age leave the loss finite.
  const std::string options =
      "--set workload.train.steps=300 --set workload.optimizer.learning_rate=1e-4";
  // Rank 1 stands still somewhere before its end until rank 0 waits for it, with a last step saved
  // already (--checkpoint-steps); then both are asked to stop.
  job.start_again(options + " --checkpoint-steps 300");
  const Output stopped = w.run_shell(
      job.server() + " & server=$!; " + job.worker(1) + " & slow=$!; " + job.worker(0) +
      " & first=$!; " + until_steps_of(1) + "kill -STOP $slow; " + until_first_did(299) +
      "sleep 0.3; kill -TERM $slow $first; kill -CONT $slow; "
      "wait $first; code=$?; wait $slow; echo first $code, second $?; wait $server");
  CHECK(stopped.err == "");
  CHECK(contains(stopped.out, "first 75, second 75"));
  CHECK(!std::filesystem::exists(w.path("run/model.safetensors")));
  const auto done_by_second = [&](int attempt) {  // its highest step
    const std::string log = read_all(w.path("run/measurements.jsonl"));
    int last = -1;
    for (int step = 0; step < 300; ++step)
      if (contains(log, "\"attempt\":" + std::to_string(attempt) +
                            ",\"rank\":1,\"step\":" + std::to_string(step) + ","))
        last = step;
    return last;
  };
  const int before = done_by_second(0);
  REQUIRE(before >= 0);
  REQUIRE(before < 299);

  job.start_again(options, 1);
  const Output resumed = job.run();
  CHECK(resumed.err == "");
  CHECK(resumed.code == 0);
  CHECK(std::filesystem::exists(w.path("run/model.safetensors")));
  CHECK(done_by_second(1) == 299);
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  // None is left out; the one it was in when rank 0 saved may be done again.
  const auto began_with = [&](int step) {
    return contains(log, "\"attempt\":1,\"rank\":1,\"step\":" + std::to_string(step) + ",");
  };
  CHECK(began_with(before + 1));
  CHECK_FALSE(began_with(before - 1));
  // It had none left, or its last where the request came before that was done.
  CHECK_FALSE(contains(log, "\"attempt\":1,\"rank\":0,\"step\":298,"));

  // A checkpoint of the end says so: nobody trains again.
  job.start_again(options, 2);
  CHECK(job.run().code == 0);
  CHECK(done_by_second(2) == -1);
}

TEST_CASE("with a backup worker the others do not wait for one that stands still") {
  const Workspace w;
  ServerJob job(w, 3, "synchronous, backup_workers: 1");
  job.start_again("--checkpoint-steps 500 --set workload.train.steps=2000");
  const Output out =
      w.run_shell(job.server() + " & " + job.worker(1) + " & " + job.worker(2) + " & slow=$!; " +
                  job.worker(0) + " & first=$!; " + until_steps_of(2) +
                  "kill -STOP $slow; for k in $(seq 3000); do kill -0 $first 2>/dev/null || break; "
                  "sleep 0.01; done; kill -0 $first 2>/dev/null && echo waited; kill -CONT $slow; "
                  "wait $first; code=$?; wait; exit $code");
  CHECK(out.err == "");
  CHECK(!contains(out.out, "waited"));
  CHECK(out.code == 0);
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000002000/manifest.json")));
}

namespace {

/// A small recommender: 1.56 million of its 1.6 million weights are in tables of users and films.
std::string recommender_plan(const std::string& strategy, int nodes, const std::string& pools) {
  return small_plan(
      "  model: ncf_ml1m\n  dataset: {samples: 20000, bytes_per_sample: 12B}\n"
      "  data: {format: clicks}\n  batch_per_accelerator: 32\n"
      "  optimizer: {kind: sgd, learning_rate: 0.5, momentum: 0, weight_decay: 0, clip_norm: 0}\n",
      strategy, nodes, pools);
}

const std::string kTwoServers =
    ", {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 2}";

/// Two workers and two servers, to their end. `beside`: commands that go on with worker 1, whose
/// process is $pid.
Output run_recommender(const Workspace& w, const std::string& file, const std::string& options,
                       const std::string& beside = "") {
  const std::string common =
      kWorker + file + " --servers 2 --workers 2 --threads 1 " + options + meeting_point(w);
  const auto process = [&](const std::string& role, int rank) {
    return common + " --role " + role + " --rank " + std::to_string(rank);
  };
  return w.run_shell(process("ps", 0) + " & " + process("ps", 1) + " & " + process("worker", 1) +
                     " & pid=$!; " + beside + process("worker", 0) + "; code=$?; wait; exit $code");
}

const std::string kServers =
    "{kind: parameter_server, workers: 2, parameter_servers: 2, mode: synchronous}";

}  // namespace

TEST_CASE("a recommender on two servers of sparse rows ends with the bits of a dense all-reduce") {
  const Workspace w;
  w.write("dense.yaml", recommender_plan("{kind: multi_worker_mirrored, workers: 2}", 2, ""));
  w.write("sparse.yaml", recommender_plan(kServers, 2, kTwoServers));
  const std::string dense =
      kWorker + "dense.yaml --workers 2 --threads 1 --out dense" + meeting_point(w);
  REQUIRE(
      w.run_shell(dense + " --rank 1 & " + dense + " --rank 0; code=$?; wait; exit $code").code ==
      0);
  const Output out = run_recommender(w, "sparse.yaml", "--out sparse");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string bits = read_all(w.path("sparse/model.safetensors"));
  CHECK(bits.size() > 6'000'000);  // whole tables
  CHECK((bits == read_all(w.path("dense/model.safetensors"))));
}

TEST_CASE("a recommender goes on from a checkpoint that holds its tables") {
  const Workspace w;
  w.write("sparse.yaml", recommender_plan(kServers, 2, kTwoServers));
  REQUIRE(run_recommender(w, "sparse.yaml", "--out whole").code == 0);
  REQUIRE(run_recommender(w, "sparse.yaml", "--out parts --steps 3").code == 0);
  const Output out = run_recommender(w, "sparse.yaml", "--out parts --attempt 1");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  CHECK(contains(read_all(w.path("parts/measurements.jsonl")), R"("action":"restore")"));
  const std::string bits = read_all(w.path("parts/model.safetensors"));
  REQUIRE(bits.size() > 6'000'000);
  CHECK((bits == read_all(w.path("whole/model.safetensors"))));
}

TEST_CASE("a worker has no memory for the tables of its servers") {
  const Workspace w;
  std::string plan = recommender_plan(kServers, 2, kTwoServers);
  plan.replace(plan.find("ncf_ml1m"), 8, "ncf");  // tables of 127 MB, and as much of gradients
  w.write("large.yaml", plan);
  const Output out = run_recommender(
      w, "large.yaml", "--out run",
      "while grep VmHWM /proc/$pid/status > now.txt 2>/dev/null; do mv now.txt peak.txt; sleep "
      "0.02; done & ");
  CHECK(out.err == "");
  REQUIRE(out.code == 0);
  std::istringstream peak(read_all(w.path("peak.txt")));
  std::string name;
  double kilobytes = 0;
  peak >> name >> kilobytes;
  INFO(kilobytes);
  CHECK(kilobytes > 5e3);   // it was measured
  CHECK(kilobytes < 60e3);  // less than a single table of users (138,493 x 128) would take alone
}
