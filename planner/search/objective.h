#pragma once
#include "sim/forecast/forecast.h"

// What the best plan is best in.
namespace reckon::planner {

using reckon::Objective;

/// What the objective makes of a time (seconds) and a cost (USD, infinite: unknown), of whatever
/// they are: two means, two quantiles, one life. Less is better.
/// Unit: seconds, USD, or USD x seconds for cost_time.
double score_of(Objective objective, double time, double cost);
bool needs_price(Objective objective);
/// Its time and cost are the 95th percentiles; else the means.
bool is_of_p95(Objective objective);
/// Infinite: it never ends, or its price is unknown and the objective needs one.
/// score_of() the forecast, in its unit.
double score(Objective objective, const Forecast& forecast);

}  // namespace reckon::planner
