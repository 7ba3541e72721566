#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "executor/launch/process.h"
#include "executor/train/records/run_directory.h"
#include "sim/scenario/plan.h"

namespace reckon {

struct ForeignStart {
  std::filesystem::path directory;  // RECKON_JOB_DIR: the program's own files; it is made
  std::int64_t attempt = 0;
  RunClock clock = RunClock::starting_now();
  int lock = -1;  // descriptor of the run's lock, which they hold for as long as they live
};

/// The processes of a job whose program is not ours, on this machine: the command of its container
/// once for each worker and each parameter server, told who they are as pods are (TF_CONFIG, RANK
/// and its companions, torchrun's and JAX's), at free ports of the loopback. Another program may
/// take a port before they do: they then fail, and the next start has others. Throws SocketError,
/// FileError.
std::vector<ProcessSpec> processes_of(const PlannedWorkload& job, const ContainerSpec& container,
                                      const ForeignStart& start);

}  // namespace reckon
