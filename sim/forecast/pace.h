#pragma once
#include <vector>

#include "sim/cluster/life/life.h"
#include "sim/scenario/plan.h"
#include "sim/step/step.h"
#include "sim/step/step_parts.h"

// What the step model says about a job, in the words of the cluster's life.
namespace reckon {

struct PacedJob {
  JobPace pace;
  StepEstimate step;  // with all workers
};

/// Step times (asynchronous: for every number of live workers), evaluation, and the checkpoint
/// policy: the interval that was given, or the optimal one for the plan's mean time to
/// interruption.
PacedJob make_pace(const Plan& plan, const NetworkModel& network);

/// The tier of checkpoints on the nodes; none: all 0.
LocalTierPace local_pace(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step);

/// By how much one assumption stretches what the step model computes, relative to its median.
struct PaceFactors {
  double step = 1, evaluation = 1, save = 1, restore = 1;
  friend bool operator==(const PaceFactors&, const PaceFactors&) = default;
};

/// The factors at both ends of one assumption's range. The step model is run once at each end and
/// never again.
struct Sensitivity {
  PaceFactors low, high;
  StepParts low_step, high_step;
};

/// `scratch` is a copy of the plan that is changed and set back. Assumptions that do not affect the
/// step are all ones.
std::vector<Sensitivity> sensitivities(Plan& scratch,
                                       const std::vector<PlanAssumption>& assumptions,
                                       const PacedJob& median, const NetworkModel& network);

}  // namespace reckon
