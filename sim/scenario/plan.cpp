#include "sim/scenario/plan.h"

#include "sim/scenario/plan_draft.h"
#include "sim/scenario/pricing.h"

namespace reckon {

Expected<Plan> make_plan(const ScenarioFile& given, const Catalog& catalog) {
  Diagnostics problems;
  const ScenarioFile file = planning::with_pools_of_tier(given, catalog, problems);
  const Scenario& scenario = file.scenario;
  planning::Draft draft{.file = file, .catalog = catalog};
  draft.errors = std::move(problems);
  Plan& plan = draft.plan;
  plan.name = scenario.name;
  plan.start = scenario.start;
  plan.replications = scenario.forecast.replications;
  plan.seed = scenario.forecast.seed;
  plan.expect = scenario.expect;
  plan.catalog_digest = catalog.digest;
  plan.sources = catalog.sources;

  planning::refuse_what_is_not_simulated(draft);
  planning::resolve_place(draft);
  if (draft.provider_covered) {
    planning::resolve_pools(draft);
    planning::check_where_accelerators_are(draft);
    planning::assign_roles(draft);
  }
  if (scenario.workload) planning::resolve_workload(draft);
  if (draft.provider_covered && !plan.jobs.empty()) {
    planning::resolve_strategy(draft, plan.jobs.front());
    if (planning::resolve_batch(draft, plan.jobs.front()))
      planning::resolve_length(draft, plan.jobs.front());
    planning::resolve_speeds(draft);
  }
  if (draft.provider_covered) {
    planning::resolve_rules(draft);
    planning::resolve_disruptions(draft);
    planning::price_pools(draft);
  }
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  return std::move(draft.plan);
}

}  // namespace reckon
