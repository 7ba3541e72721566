#pragma once
#include <optional>

#include "sim/step/step.h"

namespace reckon {

/// How long training to an accuracy is with asynchronous parameter servers (docs/MODELS.md,
/// "Staleness"). An update has the samples of one worker's step; its gradient is of parameters that
/// StepEstimate::delay other updates have changed since.
struct DelayedLength {
  double samples = 0;       // of updates of a worker's samples, with the delay
  double undelayed = 0;     // samples: the same without delay
  double synchronous = 0;   // PlannedWorkload::total_samples: steps of the global batch
  double global_batch = 1;  // samples
  double steps() const { return samples / global_batch; }
  /// Of the job's, that the delay costs.
  double steps_of_delay() const { return (samples - undelayed) / global_batch; }
};
/// nullopt: a synchronous job, or one that does not train to an accuracy.
std::optional<DelayedLength> delayed_length(const PlannedWorkload& job, const StepEstimate& step);
/// Of the job's samples; 1 where there is no such length.
double samples_factor_of(const std::optional<DelayedLength>& length);
/// The job's steps with that factor.
std::int64_t delayed_steps(const PlannedWorkload& job, const StepEstimate& step);

}  // namespace reckon
