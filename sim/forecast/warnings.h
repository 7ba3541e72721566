#pragma once
#include <string>
#include <vector>

#include "sim/forecast/forecast.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// Whether every pool of the plan has a price. If not, cost is null: a sum that leaves a pool out
/// would be a guess.
bool prices_known(const Plan& plan);

/// The efficiencies of an accelerator at the job's precision are general knowledge: neither the
/// catalog's fit nor the user's calibration has seen its architecture compute with it.
bool is_extrapolated(const Plan& plan);

/// What a reader of the forecast must know before relying on it.
std::vector<std::string> warnings_of(const Plan& plan, const Forecast& forecast);

}  // namespace reckon
