#pragma once
#include <string>

#include "sim/forecast/spot.h"

// `reckon compare --spot`.
namespace reckon {

/// Spot beside on demand, with and without saves on the notice and times without capacity, and what
/// must hold for spot to be cheaper. `spot` is the plan as it is bought on spot.
std::string spot_table(const SpotComparison& comparison, const Plan& spot, int width = 100);
std::string spot_json(const SpotComparison& comparison);

}  // namespace reckon
