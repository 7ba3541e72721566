#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/rendezvous/worker_identity.h"
#include "sim/base/quantity.h"

namespace reckon::worker {

/// What computes: `automatic` is a CUDA device where there is one that can train the model.
enum class DeviceWish { automatic, cpu, cuda };

/// What one process of a job is told on its command line.
struct Options {
  /// When this process began, as far as it knows.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  bool help = false, version = false, libraries = false;
  std::string plan;
  std::vector<std::string> overrides;  // --set path=value
  std::vector<std::filesystem::path> layers, catalogs;
  std::optional<std::uint64_t> seed;
  std::string data;  // in place of the plan's path, relative to here
  std::optional<std::int64_t> steps, micro_batch, checkpoint_steps;
  bool alone = false;  // one worker of the plan, by itself (sim/scenario/resolve/one_worker.h)
  bool phases_apart = false;          // pushes before pulls: each can be measured
  bool sum_directly = false;          // gradients on CPUs: not in a ring
  std::filesystem::path out;          // empty: nothing is written
  std::filesystem::path secret_file;  // empty: RECKON_SECRET_FILE
  bool log_records = false;           // measurements are printed, for whoever watches from afar
  int keep = 2;
  bool accept_changes = false;  // goes on from checkpoints of other settings
  int threads = 0, data_threads = 1;
  DeviceWish device = DeviceWish::automatic;
  Seconds rendezvous_deadline{300};
  IdentityFlags identity;
};

/// Throws std::invalid_argument with what is wrong.
Options parse_options(std::span<const std::string> arguments);
std::string help_text();

}  // namespace reckon::worker
