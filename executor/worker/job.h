#pragma once
#include <filesystem>
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

/// One worker of the job by itself (sim/scenario/resolve/one_worker.h). Throws RefusedJob where
/// none holds a whole model.
Job alone(Job job);

/// Ends this process with whoever started it to watch it, where somebody did. To be called before
/// anything takes long.
void end_with_supervisor();

/// Does this process' part of the job; the exit code: 0, or kExitStoppedOnRequest. Throws
/// RefusedJob, std::invalid_argument where options do not go with the job, and what the environment
/// refuses.
int run_job(const JobOptions& options, const Job& job);

}  // namespace reckon::worker
