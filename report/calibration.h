#pragma once
#include <string>

#include "sim/calibration/calibration.h"

namespace reckon {

/// What an overlay says, for people: corrections, forecasts before and after, warnings.
std::string calibration_table(const Calibration& calibration, int width = 100);
std::string calibration_json(const Calibration& calibration);

}  // namespace reckon
