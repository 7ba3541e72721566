#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/socket.h"
#include "executor/train/records/run_lock.h"
#include "sim/base/quantity.h"

// Where the files of a run lie, and what a process of it is told by whoever started it.
//
//   DIR/plan.reckon          what is run (sim/scenario/artifact/artifact.h)
//   DIR/forecast.json        what was forecast before the first step
//   DIR/measurements.jsonl   sim/measurement/measurements.h
//   DIR/trace.json           the same as a picture, for Perfetto
//   DIR/checkpoints/         executor/train/checkpoint/checkpoint_set.h
//   DIR/model.safetensors    what was trained, as PyTorch opens it (checkpoint/checkpoint_shard.h)
//   DIR/logs/rank-0.log      what each process printed
//   DIR/lock                 one job at a time
//   DIR/job.secret           while it runs: what its processes know and nobody else
namespace reckon {

struct RunDirectory {
  std::filesystem::path root;
  std::filesystem::path plan() const { return root / "plan.reckon"; }
  std::filesystem::path forecast() const { return root / "forecast.json"; }
  std::filesystem::path measurements() const { return root / "measurements.jsonl"; }
  std::filesystem::path trace() const { return root / "trace.json"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  std::filesystem::path weights() const { return root / "model.safetensors"; }
  std::filesystem::path logs() const { return root / "logs"; }
  std::filesystem::path secret() const { return root / "job.secret"; }
};

/// The clock of Measurements: seconds since the run's first start, across restarts and processes.
class RunClock {
 public:
  using Time = std::chrono::system_clock::time_point;
  explicit RunClock(Time started) : started_(started) {}
  static RunClock starting_now() { return RunClock(std::chrono::system_clock::now()); }
  /// At a moment of the steady clock.
  static RunClock started_at(std::chrono::steady_clock::time_point moment) {
    const auto since = std::chrono::steady_clock::now() - moment;
    return RunClock(std::chrono::system_clock::now() -
                    std::chrono::duration_cast<Time::duration>(since));
  }
  Time started() const { return started_; }
  Seconds now() const { return std::chrono::system_clock::now() - started_; }
  /// When something happened that was timed by the steady clock.
  Seconds at(std::chrono::steady_clock::time_point moment) const {
    return now() - Seconds(std::chrono::steady_clock::now() - moment);
  }
  /// 2026-12-04T18:00:00.123Z
  std::string text() const;
  /// nullopt: no such time.
  static std::optional<RunClock> parse(const std::string& text);

 private:
  Time started_;
};

/// What `reckon run` tells each process that it starts; a process that was started by hand makes do
/// without.
struct RunEnvironment {
  std::int64_t attempt = 0;       // RECKON_ATTEMPT: counts starts of the job
  std::optional<RunClock> clock;  // RECKON_RUN_STARTED
  std::optional<int> supervisor;  // RECKON_SUPERVISOR: process that watches
  std::optional<int> lock;        // RECKON_LOCK_FD: the run's lock, inherited
  std::optional<int> rendezvous;  // RECKON_RENDEZVOUS_FD: rank 0 listens there already, inherited
  /// RECKON_ORDERS_FD: it outlives a start of the job and then waits there (orders.h), inherited.
  std::optional<int> orders;
  bool stands_by = false;  // RECKON_STANDS_BY=1: it has no part before an order gives it one

  // Of a rank of a worker that started its ranks itself (executor/launch/worker_ranks.h):
  std::optional<int> rank_of_worker;  // RECKON_RANK_OF_WORKER: among that worker's
  std::optional<HostPort> meeting;    // RECKON_MEETING: rank 0's rendezvous, where nobody names one
  std::optional<int> parent;          // RECKON_PARENT: process that it ends with

  static RunEnvironment read();
  /// As variables, but for what is inherited, whose numbers differ from process to process.
  std::vector<std::pair<std::string, std::string>> variables() const;
  /// Those of a rank of a worker alone: the others it has from its worker.
  std::vector<std::pair<std::string, std::string>> variables_of_rank() const;
  static constexpr const char* kLockVariable = "RECKON_LOCK_FD";
  static constexpr const char* kRendezvousVariable = "RECKON_RENDEZVOUS_FD";
  static constexpr const char* kOrdersVariable = "RECKON_ORDERS_FD";
};

}  // namespace reckon
