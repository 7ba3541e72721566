#pragma once
#include <optional>

#include "sim/accuracy/evidence.h"
#include "sim/scenario/plan.h"
#include "sim/step/network.h"

// What evidence says of a plan's job.
namespace reckon {

/// Does evidence speak of the plan's workers? Not of processors, nor where a calibration has
/// measured them: what was measured on the user's own machines counts alone.
bool takes_evidence(const Plan& plan);

/// Sets the factor on the step's time (PlannedPool::efficiency.step_spread: median, 5th and 95th
/// percentile) of the plan's computing pools to what evidence says of the plan's first job, whose
/// step the other jobs' are like. Before it the step model's is asked: factor 1.
/// nullopt: nothing is set, as evidence does not speak of it.
std::optional<Residual> set_residual(Plan& plan, const Evidence& evidence,
                                     const NetworkModel& network);
/// The same of a residual that is known.
void set_residual(Plan& plan, const Residual& residual);

}  // namespace reckon
