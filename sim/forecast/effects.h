#pragma once
#include <functional>
#include <vector>

#include "sim/forecast/forecast.h"
#include "sim/forecast/replicate.h"

namespace reckon {

/// How many lives `assumption_effects` will run, for the progress display.
double effect_replications(const ForecastSetup& setup, int replications);  // a count

/// For every assumption: few replications with it at its low end and the same ones at its high end,
/// all else drawn as in the forecast (common random numbers), so that the difference is the
/// assumption's and not luck's. Largest first, measured against the forecast's own time and cost;
/// those without any effect are left out.
std::vector<AssumptionEffect> assumption_effects(const ForecastSetup& setup,
                                                 const Forecast& forecast, int threads,
                                                 const std::function<void(double)>& lived);

/// A number with its unit as people write it: "3 min 30 s", "12.5 GB/s". Units: "s", "B/s",
/// "FLOP/s", "fraction" and the others of PlanAssumption.
std::string format_in_unit(double value, std::string_view unit);
/// "3 min 30 s (3 min .. 4 min)".
std::string format_assumption(const PlanAssumption& assumption);

}  // namespace reckon
