#pragma once
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/background_job.h"
#include "cli/run/hand_started.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "support/trained_weights.h"

// A job of workers that are several ranks each, one a device, and what tests ask of its processes.
namespace reckon::test {

inline const std::string kDevicesGpt =
    "{layers: 4, hidden: 32, heads: 4, vocabulary: 64, sequence_length: 16, positions: 16, "
    "tied_output: true}";

/// A small GPT on nodes with two accelerators each.
inline std::string devices_job(const std::string& strategy, int nodes, int steps,
                               const std::string& more = "", const std::string& gpt = kDevicesGpt) {
  return "name: devices\nworkload:\n"
         "  model: {transformer: " +
         gpt +
         "}\n"
         "  dataset: {samples: 4096, bytes_per_sample: 32B}\n"
         "  train: {steps: " +
         std::to_string(steps) +
         "}\n  precision: fp32\n  global_batch: 16\n  strategy: " + strategy + "\n" + more +
         "  optimizer: {kind: sgd, learning_rate: 0.01, momentum: 0.9, clip_norm: 0}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n  provider: on_premises\n  pools:\n"
         "    - {name: here, machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}, accelerator: "
         "{type: T4, count: 2}, nodes: " +
         std::to_string(nodes) + "}\n";
}

inline constexpr const char* kDevicesRun =
    "--retries 100 --retry-delay 0s --replications 20 --checkpoint-steps 10 ";

inline std::vector<float> devices_weights(const Workspace& w, const std::string& out) {
  return trained_weights(w.path(out) / "model.safetensors");
}

/// `before`: words of the shell before the program's name.
inline std::vector<float> devices_run(const Workspace& w, const std::string& file,
                                      const std::string& out, const std::string& before = "") {
  BackgroundJob job(w, file, out, kDevicesRun, before);
  const int code = job.code();
  INFO(out << ": " << job.errors());
  REQUIRE(code == 0);
  return devices_weights(w, out);
}

inline Measurements devices_records(const Workspace& w, const std::string& out) {
  auto read = read_measurement_log(w.path(out) / "measurements.jsonl");
  REQUIRE(read);
  return std::move(*read);
}

inline std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::istringstream text(read_all("/proc/" + id + "/task/" + id + "/children"));
  std::vector<pid_t> ids;
  for (pid_t child = 0; text >> child;) ids.push_back(child);
  return ids;
}

inline bool saved(const Workspace& w, const std::string& out, std::int64_t step) {
  const auto sets = list_sets(w.path(out) / "checkpoints");
  return std::ranges::any_of(sets,
                             [&](const CheckpointSet& s) { return s.complete && s.step >= step; });
}

/// Kills the last of four ranks of a running job behind step 20, and waits for the job's end, which
/// is a good one. The processes by rank, before the loss and once it has gone on.
struct LostLastRank {
  std::vector<pid_t> before, behind;
  bool outlives(std::size_t rank) const {
    return std::ranges::find(behind, before[rank]) != behind.end();
  }
};
inline LostLastRank lose_last_rank(const Workspace& w, BackgroundJob& job) {
  LostLastRank seen;
  REQUIRE(job.wait_for([&] {
    seen.before = job.workers();
    return saved(w, "run", 20) && seen.before.size() == 4;
  }));
  const std::size_t runs = devices_records(w, "run").runs.size();
  ::kill(seen.before[3], SIGKILL);
  job.wait_for([&] {
    seen.behind = job.workers();
    return devices_records(w, "run").runs.size() > runs;
  });
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  return seen;
}

template <class There>
inline bool wait_for_that(There there) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!there()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace reckon::test
