#pragma once
#include "cli/plan/plan_options.h"
#include "planner/question.h"
#include "sim/step/network/network.h"

namespace reckon::cli {

/// `reckon plan` of a scenario with several jobs: the exit code.
Expected<int> answer_fleet(const PlanOptions& options, const planner::Base& base,
                           const Catalog& catalog, const NetworkModel& network);

}  // namespace reckon::cli
