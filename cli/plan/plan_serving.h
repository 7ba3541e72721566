#pragma once
#include "cli/plan/plan_options.h"
#include "planner/question.h"

namespace reckon::cli {

/// Does the scenario ask what its service should run on (serving.goal)?
bool asks_for_service(const ScenarioFile& file);

/// Prints what the service of `file` should run on; the exit code. Where the scenario also trains,
/// its `plan:` block is about the training.
Expected<int> answer_service(const PlanOptions& options, const ScenarioFile& file,
                             const Catalog& catalog);

/// The question about the training that stands beside a service, on its own.
Expected<void> leave_training(planner::Base& base);

}  // namespace reckon::cli
