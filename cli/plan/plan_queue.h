#pragma once
#include "cli/load/load.h"
#include "cli/plan/plan_options.h"

namespace reckon::cli {

/// Prints the fewest nodes of --pool with which --limit holds for the jobs that share the cluster
/// of `file`; the exit code.
Expected<int> answer_nodes(const PlanOptions& options, const ScenarioFile& file,
                           const LoadedCatalog& catalog);

}  // namespace reckon::cli
