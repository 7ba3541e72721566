#include "sim/scenario/resolve/training/training.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/scenario/resolve/draft.h"

namespace reckon::planning {

Diagnostics resolve_training(Plan& plan, const ScenarioFile& file, const Catalog& catalog) {
  RECKON_CHECK(plan.jobs.size() == 1);
  // What an autoscaler may choose has been added behind the pools of the file.
  RECKON_CHECK(plan.pools.size() >= file.scenario.cluster.pools.size());
  Draft draft{.file = file, .catalog = catalog};
  std::vector<std::string> warnings = std::exchange(plan.warnings, {});
  draft.plan = std::move(plan);
  draft.resolved.assign(draft.plan.pools.size(), true);
  draft.roles_known = draft.workload_known = true;
  for (PlannedPool& pool : draft.plan.pools) resolve_nodes(draft, pool, draft.spec(pool));
  PlannedWorkload& job = draft.plan.only_job();
  job.strategy = {};
  resolve_strategy(draft, job);
  if (resolve_batch(draft, job)) resolve_length(draft, job);
  plan = std::move(draft.plan);
  plan.warnings = std::move(warnings);
  return std::move(draft.errors);
}

}  // namespace reckon::planning
