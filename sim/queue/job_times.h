#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/quantity.h"

// When a job of a trace came, started and ended.
namespace reckon {

struct JobTimes {
  SimTime submit{};
  std::optional<SimTime> start, end;  // nullopt: not within what was simulated
};

struct TimeStatistics {
  std::int64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0;  // seconds; quantiles by linear interpolation
};
TimeStatistics statistics_of(std::vector<double> seconds);

/// What the jobs of a trace say together.
struct QueueRun {
  std::vector<JobTimes> jobs;                    // in order of the list
  std::vector<std::size_t> never;                // jobs that no empty cluster could run
  std::size_t first_measured = 0, measured = 0;  // jobs that count below
  TimeStatistics waiting, completion;            // start - submit; end - submit
  double makespan_seconds = 0;                   // first submit to last end, of all jobs
  double gpu_seconds = 0;                        // that jobs held, of all jobs
  double utilization = 0;                        // gpu_seconds over GPUs times makespan
};
/// Fills what follows from `jobs`, `first_measured`, `measured` and `gpu_seconds`.
void summarize(QueueRun& run, int gpus);

}  // namespace reckon
