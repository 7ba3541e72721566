#pragma once
#include <vector>

#include "sim/measurement/measurements.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// What the starts of a run took, by its records, seconds each. Nothing is listed that was not
/// measured: processes of this machine pull no image, nor does a node that has it.
struct StartTimes {
  std::vector<double> process;    // by start: from rank 0's process to its first step, less restore
  std::vector<double> restore;    // by start that had a checkpoint: reading it back
  std::vector<double> pull;       // by pod: of the container's image
  std::vector<double> container;  // by pod: from its node and image to its process
};
StartTimes start_times(const Measurements& measured);

/// What one run measured, to within what the next may differ: 5th and 95th percentile at +-20 %
/// (assumed).
Fact<Seconds> measured_once(Seconds time, SourceId source = SourceId::user);

/// Sets the next start of the plan to what those of the same run of our worker took: the first of
/// its processes, since later ones may have stood by; to within what another may differ. `there`:
/// its nodes are there and have the image; else nodes come as the plan has it, and pull the image
/// as long as it was seen to take. Without a start that was measured the plan stays.
void start_as_seen(Plan& plan, const StartTimes& times, bool there);

}  // namespace reckon
