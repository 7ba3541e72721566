#pragma once
#include "planner/planner.h"

namespace reckon::planner {

/// No plan fits: which limit binds, and how far it would have to give way. Forecasts the fastest
/// and the cheapest candidates of the quick look, within the other limit and without it, and what
/// limits left out that hold before anything is forecast.
Infeasible why_none(const SearchSetting& setting, Evaluator& evaluator, const Answer& answer,
                    std::vector<Evaluated> finished);

}  // namespace reckon::planner
