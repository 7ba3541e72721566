#pragma once
#include <optional>

#include "sim/scenario/plan.h"

// How much work lies between two saves of a real run: as planned, and how a run leaves its plan.
namespace reckon {

/// Mode interval: the plan's own. Mode optimal: what the forecast set; where none did, Daly's of a
/// save's fixed part. Seconds::max(): none is made, or nothing interrupts the job.
Seconds planned_save_interval(const Plan& plan, const PlannedWorkload& job);

/// The plan's policy for saves that stop the training for `measured`, where that moves the interval
/// `now` by more than a tenth: to first order the loss is flat around the optimum, a tenth beside
/// it costs half a percent of what saves and rework cost together [Young 1974]. nullopt: `now`
/// stays, as it always does in mode interval and none.
std::optional<Seconds> amended_save_interval(const Plan& plan, const PlannedWorkload& job,
                                             Seconds now, Seconds measured);

}  // namespace reckon
