#pragma once
#include <optional>

#include "sim/base/quantity.h"
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

/// Two tiers: the nodes get a checkpoint each time `every` of work is done, and the storage one
/// behind a whole number of those. The multiple of `every` that is nearest to `interval`, both
/// above 0; nullopt: `interval` is no longer than `every`, and there is one tier.
std::optional<SimDuration> interval_of_storage(SimDuration interval, SimDuration every);

}  // namespace reckon
