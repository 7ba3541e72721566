#pragma once
#include <span>
#include <string>

#include "report/explain/profile.h"
#include "sim/measurement/calibration/calibration.h"

namespace reckon {

/// What an overlay says, for people: corrections, forecasts before and after, warnings.
std::string calibration_table(const Calibration& calibration, int width = 100);
/// With what the files of other tools say that it rests on.
std::string calibration_json(const Calibration& calibration,
                             std::span<const ProfiledFile> profiles = {});

}  // namespace reckon
