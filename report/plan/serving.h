#pragma once
#include <string>

#include "planner/serving.h"

namespace reckon {

/// The cheapest that hold the goal, one an accelerator, and what the next ones give up.
std::string serving_plan_table(const planner::ServingAnswer& answer);
/// "serving_plans" of `reckon plan --format json`.
std::string serving_plan_json(const planner::ServingAnswer& answer);

}  // namespace reckon
