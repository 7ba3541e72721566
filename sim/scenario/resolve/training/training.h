#pragma once
#include "sim/scenario/plan.h"

namespace reckon::planning {

/// Resolves again what a plan says of nodes, strategy, batch and length, for a scenario that
/// differs from the one it was made of in nothing else: what make_plan does, without looking up the
/// rest. A search asks so for many ways to train on the same pools. Prices stay those of before,
/// and so do warnings. What is wrong is returned; the plan is then not to be used.
Diagnostics resolve_training(Plan& plan, const ScenarioFile& file, const Catalog& catalog);

}  // namespace reckon::planning
