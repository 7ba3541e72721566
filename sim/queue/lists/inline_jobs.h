#pragma once
#include <optional>

#include "sim/queue/job_list.h"
#include "sim/scenario/scenario.h"

namespace reckon {

/// The jobs of a scenario's `jobs:` under cluster.scheduler, in the order of the file, each as
/// often as it says. `line` is that of its entry. Without a `duration` its length is 1 ns, to be
/// set from its training; `pace` is the number of its entry then, and where it says a pace.
JobList inline_jobs(const ScenarioFile& file);

/// The pods of a job of so many GPUs. The GPUs must be a multiple of a pod's.
void set_pods(JobRequest& job, const std::optional<PodShapeSpec>& pod);

}  // namespace reckon
