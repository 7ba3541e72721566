#pragma once
#include <span>

#include "sim/measurement/calibration/calibration.h"
#include "sim/measurement/measured_run.h"

namespace reckon {

/// Adds to `result` what the runs' waits say: provisioning (by provider and kind of node), time
/// until spot nodes are reclaimed, start of the job. Each correction is by itself: its row of the
/// covariance has its variance only. The runs' scenarios can be planned.
void calibrate_waits(std::span<const MeasuredRun> runs, const Catalog& catalog,
                     Calibration& result);

}  // namespace reckon
