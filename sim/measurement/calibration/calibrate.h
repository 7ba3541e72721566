#pragma once
#include <span>
#include <string>
#include <vector>

#include "sim/measurement/calibration/calibration.h"
#include "sim/measurement/measured_run.h"

// From measured runs to a calibration overlay (docs/MODELS.md, "Calibration").
namespace reckon {

/// The numbers of `catalog` that the runs' forecasts rest on, as their maximum a posteriori: the
/// catalog's value and range are the prior, ln(forecast / measured) of each quantity the residual.
/// Steps on accelerators that evidence speaks of (takes_evidence()) are no residuals but rows of
/// Calibration::own_runs, unless kernels of an accelerator were measured beside them.
/// What was measured of the samples is set before the fit (calibrate_input.h).
/// What stays within a hundredth of its value and keeps nine tenths of its range is not corrected.
///
/// Errors: a scenario that this catalog cannot plan; no measured quantity that a forecast rests on.
Expected<Calibration> calibrate(std::span<const MeasuredRun> runs, const Catalog& catalog,
                                const NetworkModel& network);

}  // namespace reckon
