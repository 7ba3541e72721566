#pragma once
#include "executor/worker/job_options.h"
#include "sim/scenario/spec/workload.h"

// How many threads a process has where nobody says it.
namespace reckon::worker {

/// The cores that this process may use (sched_getaffinity(2)), shared with the processes of the job
/// that may use the same: LOCAL_WORLD_SIZE, as torchrun and our launcher say it, else the tasks of
/// its step of Slurm on this node, unless Slurm gave each task cores of its own. At least 1.
int cores_of_process();

/// Threads that compute.
int computing_threads(const JobOptions& options);
/// Threads that read and decode samples ahead. One that has nothing to decode and nothing to wait
/// for is enough.
int loading_threads(const JobOptions& options, const DataSpec& data);

}  // namespace reckon::worker
