#pragma once
#include <string>
#include <vector>

#include "sim/forecast/forecast.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// Whether every pool of the plan has a price. If not, cost is null: a sum that leaves a pool out
/// would be a guess.
bool prices_known(const Plan& plan);

/// The efficiencies are those of an accelerator's architecture, no measurement of the accelerator
/// itself is in the catalog.
bool is_extrapolated(const Plan& plan);

/// What a reader of the forecast must know before relying on it.
std::vector<std::string> warnings_of(const Plan& plan, const Forecast& forecast);

}  // namespace reckon
