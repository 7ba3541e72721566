#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "cli/background_job.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/node_directory.h"
#include "executor/train/records/measurement_log.h"
#include "support/trained_weights.h"

// `reckon run` of jobs that save on their nodes besides the storage (workload.checkpoint.local):
// real processes, killed.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;

/// A small GPT over three nodes, each of one rank. The storage gets what --checkpoint-steps says,
/// or nothing in the time of a test.
std::string nodes_job(const std::string& strategy, const std::string& local,
                      const std::string& more = "") {
  return "name: tiers\nworkload:\n"
         "  model: {transformer: {layers: 4, hidden: 32, heads: 4, vocabulary: 64, "
         "sequence_length: 16, positions: 16, tied_output: true}}\n"
         "  dataset: {samples: 4096, bytes_per_sample: 32B}\n"
         "  train: {steps: 200}\n  precision: fp32\n  global_batch: 24\n  strategy: " +
         strategy +
         "\n"
         "  optimizer: {kind: sgd, learning_rate: 0.01, momentum: 0.9}\n"
         "  checkpoint: {interval: 1h, local: " +
         local + "}\n" + more +
         "cluster:\n  provider: on_premises\n  pools:\n"
         "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 3}\n";
}

constexpr const char* kTiersRun = "--retries 100 --retry-delay 500ms --replications 20 ";

/// Steps of the newest checkpoint of which all nodes have their part, and its copies on the nodes
/// behind it; 0: there is none.
std::int64_t newest_of_nodes(const fs::path& out, LocalTier to, int replicas = 1) {
  for (const CheckpointSet& set : list_sets(node_directory(out, to, 0))) {
    int there = 0;
    for (int rank = 0; rank < 3; ++rank)
      for (int copy = 0; copy < replicas; ++copy) {
        const fs::path node = node_directory(out, to, (rank + copy) % 3);
        there += fs::exists(shard_file(set_directory(node, set.step), rank));
      }
    if (there == 3 * replicas) return set.step;
  }
  return 0;
}

std::int64_t newest_of_storage(const fs::path& out) {
  for (const CheckpointSet& set : list_sets(out / "checkpoints"))
    if (set.complete) return set.step;
  return 0;
}

std::vector<float> undisturbed_tiers(const Workspace& w) {
  BackgroundJob job(w, "job.yaml", "straight", kTiersRun);
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  return weights_of_run(w.path("straight"));
}

Measurements records_of_tiers(const Workspace& w) {
  auto read = read_measurement_log(w.path("run") / "measurements.jsonl");
  REQUIRE(read);
  return std::move(*read);
}

/// Kills all processes of the job at once, as where a rank dies and takes the others with it; no
/// process is left that holds anything.
void kill_all(BackgroundJob& job) {
  for (const pid_t id : job.workers()) ::kill(id, SIGSTOP);
  for (const pid_t id : job.workers()) ::kill(id, SIGKILL);
}

struct Tiers {
  std::string strategy, replicas, restart;
  LocalTier to;
};

void check_goes_on_from_nodes(const Tiers& how) {
  const Workspace w;
  const LocalTier to = how.to;
  const int replicas = std::stoi(how.replicas);
  const std::string local =
      "{to: " + std::string(to_text(to)) + ", every: 20ms, replicas: " + how.replicas + "}";
  INFO(how.strategy << ' ' << local << ' ' << how.restart);
  w.write("job.yaml", nodes_job(how.strategy, local, "  restart: {kind: " + how.restart + "}\n"));
  const auto expected = undisturbed_tiers(w);
  BackgroundJob job(w, "job.yaml", "run", kTiersRun);
  std::vector<std::int64_t> there;
  for (int kill = 0; kill < 2; ++kill) {
    const std::int64_t before = there.empty() ? 0 : there.back();
    const auto runs = std::size_t(kill) + 1;
    REQUIRE(job.wait_for([&] {
      return newest_of_nodes(w.path("run"), to, replicas) > before && job.workers().size() == 3 &&
             records_of_tiers(w).runs.size() == runs;
    }));
    there.push_back(newest_of_nodes(w.path("run"), to, replicas));
    if (kill == 0)
      ::kill(job.workers().at(1), SIGKILL);
    else
      kill_all(job);
  }
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements read = records_of_tiers(w);
  REQUIRE(read.runs.size() == 3);
  for (std::size_t k = 0; k < there.size(); ++k)
    CHECK(read.runs[k + 1].first_step >= there[k]);  // what was there was not lost
  CHECK((weights_of_run(w.path("run")) == expected));
  // The storage has the end of the training, the nodes have nothing any more.
  CHECK(newest_of_storage(w.path("run")) == 200);
  for (int node = 0; node < 3; ++node)
    CHECK_FALSE(fs::exists(node_directory(w.path("run"), to, node)));
}

}  // namespace

TEST_CASE("killed processes go on from what their nodes have, while the storage has nothing") {
  check_goes_on_from_nodes(
      {"{kind: sharded, workers: 3, zero_stage: 1}", "2", "in_place", LocalTier::local_disk});
}

TEST_CASE("whole restarts go on from disks of one copy, and from memory of two", "[.long]") {
  check_goes_on_from_nodes(
      {"{kind: multi_worker_mirrored, workers: 3}", "1", "full", LocalTier::local_disk});
  check_goes_on_from_nodes(
      {"{kind: sharded, workers: 3, zero_stage: 3}", "2", "full", LocalTier::peer_memory});
}

TEST_CASE("with a lost node the storage is gone on from, or copies on other nodes") {
  const Workspace w;
  const int replicas = GENERATE(1, 2);
  INFO(replicas << " replicas");
  w.write("job.yaml",
          nodes_job("{kind: sharded, workers: 3, zero_stage: 1}",
                    "{to: local_disk, every: 10ms, replicas: " + std::to_string(replicas) + "}"));
  const auto expected = undisturbed_tiers(w);
  const fs::path out = w.path("run");
  BackgroundJob job(w, "job.yaml", "run", std::string(kTiersRun) + "--checkpoint-steps 100");
  REQUIRE(job.wait_for([&] {
    return newest_of_storage(out) >= 100 &&
           newest_of_nodes(out, LocalTier::local_disk, replicas) > newest_of_storage(out) + 5;
  }));
  for (const pid_t id : job.workers()) ::kill(id, SIGSTOP);
  const std::int64_t on_nodes = newest_of_nodes(out, LocalTier::local_disk, replicas);
  kill_all(job);
  fs::remove_all(node_directory(out, LocalTier::local_disk, 1));
  const std::int64_t stored = newest_of_storage(out);
  REQUIRE(on_nodes > stored);
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements read = records_of_tiers(w);
  REQUIRE(read.runs.size() == 2);
  if (replicas == 1)
    CHECK(read.runs[1].first_step == stored);
  else
    CHECK(read.runs[1].first_step >= on_nodes);
  CHECK((weights_of_run(w.path("run")) == expected));
}

TEST_CASE("a run whose launcher was killed is resumed from its nodes, a new one begins anew") {
  const Workspace w;
  w.write("job.yaml",
          nodes_job("{kind: multi_worker_mirrored, workers: 3}", "{to: peer_memory, every: 20ms}"));
  const auto expected = undisturbed_tiers(w);
  const fs::path out = w.path("run");
  std::int64_t there = 0;
  {
    BackgroundJob job(w, "job.yaml", "run", kTiersRun);
    REQUIRE(job.wait_for([&] {
      there = newest_of_nodes(out, LocalTier::peer_memory);
      return there > 0;
    }));
    const auto workers = job.workers();
    job.signal(SIGKILL);
    job.code();
    // They end with it, and only then is nothing written any more.
    for (int waits = 0;
         waits < 1000 && std::ranges::any_of(workers, [](pid_t id) { return ::kill(id, 0) == 0; });
         ++waits)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  SECTION("resumed") {
    BackgroundJob job(w, "job.yaml", "run", std::string(kTiersRun) + "--resume");
    const int code = job.code();
    INFO(job.errors());
    REQUIRE(code == 0);
    CHECK(records_of_tiers(w).runs.back().first_step >= there);
    CHECK((weights_of_run(w.path("run")) == expected));
  }
  SECTION("under other settings: refused, and the nodes keep what they have") {
    BackgroundJob job(
        w, "job.yaml", "run",
        std::string(kTiersRun) + "--resume --set workload.optimizer.learning_rate=0.0123");
    CHECK(job.code() == 2);
    CHECK(contains(job.errors(), "was trained under other settings:"));
    CHECK(contains(job.errors(), "learning_rate: recorded "));
    CHECK(newest_of_nodes(out, LocalTier::peer_memory) >= there);
    BackgroundJob as_before(w, "job.yaml", "run", std::string(kTiersRun) + "--resume");
    CHECK(as_before.code() == 0);
    CHECK(records_of_tiers(w).runs.back().first_step >= there);
  }
  SECTION("another run in the same place") {
    fs::remove_all(out);
    BackgroundJob job(w, "job.yaml", "run", kTiersRun);
    const int code = job.code();
    INFO(job.errors());
    REQUIRE(code == 0);
    CHECK(records_of_tiers(w).runs.front().first_step == 0);
    CHECK((weights_of_run(w.path("run")) == expected));
  }
}
