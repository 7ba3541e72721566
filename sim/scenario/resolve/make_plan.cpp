#include "sim/scenario/plan.h"

#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/scenario/resolve/serving.h"

namespace reckon {
namespace {

/// `problems` are those that are known already.
Expected<Plan> plan_of_workload(const ScenarioFile& file, const Catalog& catalog,
                                Diagnostics problems, bool of_replicas = false) {
  const Scenario& scenario = file.scenario;
  planning::Draft draft{.file = file, .catalog = catalog};
  draft.of_replicas = of_replicas;
  draft.errors = std::move(problems);
  Plan& plan = draft.plan;
  plan.name = scenario.name;
  plan.start = scenario.start;
  plan.replications = scenario.forecast.replications;
  plan.seed = scenario.forecast.seed;
  planning::resolve_expectations(draft);
  plan.catalog_digest = catalog.digest;
  plan.calibrations = catalog.calibrations;
  plan.sources = catalog.sources;

  planning::refuse_what_is_not_simulated(draft);
  if (!planning::resolve_place(draft)) return tl::unexpected(std::move(draft.errors));
  planning::resolve_pools(draft);
  planning::check_where_accelerators_are(draft);
  planning::assign_roles(draft);
  planning::resolve_provisioning(draft);
  planning::resolve_fallbacks(draft);
  planning::resolve_autoscalers(draft);
  planning::resolve_karpenter(draft);
  planning::resolve_node_auto_provisioning(draft);
  planning::resolve_fabric(draft);
  if (scenario.workload) planning::resolve_workload(draft);
  if (!plan.jobs.empty()) {
    planning::resolve_strategy(draft, plan.only_job());
    if (planning::resolve_batch(draft, plan.only_job()))
      planning::resolve_length(draft, plan.only_job());
    planning::resolve_restart(draft, plan.only_job());
    planning::resolve_speeds(draft);
  }
  planning::resolve_rules(draft);
  planning::resolve_disruptions(draft);
  planning::price_pools(draft);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  return std::move(draft.plan);
}

}  // namespace

Expected<Plan> planning::plan_of_replicas(const ScenarioFile& file, const Catalog& catalog) {
  return plan_of_workload(file, catalog, {}, true);
}

Expected<Plan> make_plan(const ScenarioFile& given, const Catalog& catalog) {
  Diagnostics problems;
  if (given.scenario.serving && !trains(given.scenario))
    return tl::unexpected(Diagnostics{{Severity::error, given.places.find("serving"),
                                       "the scenario serves and trains nothing",
                                       "what was asked for is about a training: add a workload; "
                                       "'reckon simulate' without --sweep "
                                       "and 'reckon check' take it as it is"}});
  const ScenarioFile file = planning::with_pools_of_tier(without_serving(given), catalog, problems);
  const auto make = [&](const ScenarioFile& one) {
    return plan_of_workload(one, catalog, problems);
  };
  return file.scenario.jobs.empty() ? make(file) : planning::plan_of_jobs(file, catalog, make);
}

}  // namespace reckon
