#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "planner/remedies.h"
#include "sim/measurement/measurements.h"

namespace reckon {

/// "97 % to miss 14:20: two more workers from the next checkpoint: 14:20 94 % likely, +0.38 USD".
/// `begin`: the run's first start.
std::string decision_line(const DecisionRecord& decision, const planner::RunLimits& limits,
                          std::chrono::system_clock::time_point begin,
                          std::chrono::system_clock::time_point now);

}  // namespace reckon
