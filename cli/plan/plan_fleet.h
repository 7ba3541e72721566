#pragma once
#include "cli/options.h"
#include "planner/question.h"
#include "sim/step/network/network.h"

namespace reckon::cli {

/// `reckon plan` of a scenario with several jobs: the exit code.
Expected<int> answer_fleet(const Options& options, const planner::Base& base,
                           const Catalog& catalog, const NetworkModel& network);

}  // namespace reckon::cli
