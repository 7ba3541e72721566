#pragma once
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "executor/worker/job_options.h"
#include "sim/base/diagnostic.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/plan.h"

namespace reckon::worker {

/// What a process takes part in.
struct Job {
  Plan plan;
  std::string file;                 // that names the plan, for messages
  std::filesystem::path directory;  // what the path of its data goes by
  PlanDigests digests;              // none: the plan was made by hand, of a scenario
};

/// The plan, the environment or both do not let this process take part.
struct RefusedJob : std::runtime_error {
  explicit RefusedJob(Diagnostics found)
      : std::runtime_error("the job is refused"), diagnostics(std::move(found)) {}
  Diagnostics diagnostics;
};

/// The job of a run, as its artifact has it: nothing changes it any more. Throws RefusedJob where
/// it is not bound to the place of a run.
Job job_of_run(ReadArtifact read, const std::string& file);

/// Does the job train on so many ranks: all, or whole copies of an elastic one?
bool trains_on(const PlannedWorkload& job, int ranks);

/// One worker of the job by itself (sim/scenario/resolve/one_worker.h). Throws RefusedJob where
/// none holds a whole model.
Job alone(Job job);

/// One of the plan's workers whose ranks are processes of their own.
struct WorkerOfRanks {
  int ranks = 1, first = 0;  // how many; the first, among all of the job
  bool alone = false;        // nobody but they: they meet on this machine
};
/// Where this process is named as such a worker, not as one of its ranks: it starts them
/// (executor/launch/worker_ranks.h). nullopt: it takes part itself. Throws RefusedJob;
/// std::runtime_error where there are devices, but fewer than ranks.
std::optional<WorkerOfRanks> worker_of_ranks(const JobOptions& options, const Job& job);

/// Ends this process with whoever started it to watch it, where somebody did. To be called before
/// anything takes long.
void end_with_supervisor();

/// Does this process' part of the job; the exit code: 0, or kExitStoppedOnRequest. Throws
/// RefusedJob, std::invalid_argument where options do not go with the job, and what the environment
/// refuses.
int run_job(const JobOptions& options, const Job& job);

}  // namespace reckon::worker
