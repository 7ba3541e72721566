#pragma once
#include "sim/step/step.h"

namespace reckon {

/// A step before what every job has besides: its input, its host, the spread of comparable runs.
struct BareStep {
  StepEstimate estimate;
  double samples = 0;       // of all accelerators, that count
  double samples_each = 0;  // that one accelerator takes in
  double rounds = 1;        // a count; asynchronous: steps of a worker in one of the job
  std::int64_t accelerators = 1;
  FlopsPerSecond peak{};  // of the slowest accelerator; 0: computed on CPUs
};

/// Parameter servers and their workers, of which `live_workers` take part (0: all); the slowest
/// pool's accelerators set the pace (docs/MODELS.md, "Parameter servers").
BareStep server_step(const Plan& plan, const PlannedWorkload& job, const NetworkModel& network,
                     int live_workers);

}  // namespace reckon
