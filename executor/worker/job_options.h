#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/train/device/wish.h"
#include "sim/base/quantity.h"
#include "sim/scenario/spec/workload.h"

namespace reckon::worker {

/// What one process of a job is told beside the plan.
struct JobOptions {
  /// When this process began, as far as it knows.
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  // In place of the plan's paths, relative to here; empty: the plan's.
  std::filesystem::path data, validation;
  std::optional<std::int64_t> steps, micro_batch, checkpoint_steps;
  bool phases_apart = false;             // pushes before pulls: each can be measured
  bool sum_directly = false;             // gradients on CPUs: not in a ring
  std::filesystem::path out;             // empty: nothing is written
  std::filesystem::path node_directory;  // of checkpoints on this node; empty: see Session
  bool one_tier = false;                 // none there, whatever the plan says
  std::filesystem::path secret_file;     // empty: RECKON_SECRET_FILE
  bool log_records = false;              // measurements are printed, for whoever watches from afar
  int keep = 2;
  bool accept_changes = false;  // goes on from checkpoints of other settings
  int threads = 0;              // that compute; 0: the machine's cores, shared by its processes
  int data_threads = 0;         // that load samples; 0: the plan's
  DeviceWish device = DeviceWish::automatic;
  Seconds rendezvous_deadline{300};
  IdentityFlags identity;
};

/// A location that is given here, not in the plan.
inline std::string given_location(const std::filesystem::path& given) {
  return is_store_location(given.string()) ? given.string()
                                           : std::filesystem::absolute(given).string();
}
/// Where the samples really come from.
inline DataSpec data_of(const JobOptions& options, DataSpec planned) {
  if (!options.data.empty()) planned.path = given_location(options.data);
  if (!options.validation.empty()) planned.validation = given_location(options.validation);
  return planned;
}

}  // namespace reckon::worker
