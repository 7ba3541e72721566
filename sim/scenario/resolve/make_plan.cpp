#include "sim/scenario/plan.h"

#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/scenario/resolve/serving.h"

namespace reckon {
namespace {

/// What the scenario says of the plan as a whole.
void begin_plan(planning::Draft& draft) {
  const Scenario& scenario = draft.scenario();
  Plan& plan = draft.plan;
  plan.name = scenario.name;
  plan.start = scenario.start;
  plan.replications = scenario.forecast.replications;
  plan.seed = scenario.forecast.seed;
  planning::resolve_expectations(draft);
  plan.catalog_digest = draft.catalog.digest;
  plan.calibrations = draft.catalog.calibrations;
  plan.sources = draft.catalog.sources;
}

/// What runs on the pools' nodes changes nothing of it. False: nothing more can be said.
bool resolve_cluster(planning::Draft& draft) {
  planning::refuse_what_is_not_simulated(draft);
  if (!planning::resolve_place(draft)) return false;
  planning::resolve_pools(draft);
  planning::check_where_accelerators_are(draft);
  planning::assign_roles(draft);
  planning::resolve_provisioning(draft);
  planning::resolve_fallbacks(draft);
  planning::resolve_autoscalers(draft);
  planning::resolve_karpenter(draft);
  planning::resolve_node_auto_provisioning(draft);
  planning::resolve_fabric(draft);
  return true;
}

void resolve_operations(planning::Draft& draft) {
  planning::resolve_rules(draft);
  planning::resolve_disruptions(draft);
  planning::price_pools(draft);
}

/// `problems` are those that are known already.
Expected<Plan> plan_of_workload(const ScenarioFile& file, const Catalog& catalog,
                                Diagnostics problems) {
  planning::Draft draft{.file = file, .catalog = catalog};
  draft.errors = std::move(problems);
  Plan& plan = draft.plan;
  if (file.scenario.workload) draft.use = planning::use_of(*file.scenario.workload);
  begin_plan(draft);
  if (!resolve_cluster(draft)) return tl::unexpected(std::move(draft.errors));
  if (draft.use) planning::resolve_workload(draft);
  if (!plan.jobs.empty()) {
    planning::resolve_strategy(draft, plan.only_job());
    if (planning::resolve_batch(draft, plan.only_job()))
      planning::resolve_length(draft, plan.only_job());
    planning::resolve_restart(draft, plan.only_job());
    planning::resolve_speeds(draft);
  }
  resolve_operations(draft);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  return std::move(draft.plan);
}

}  // namespace

Expected<planning::PlannedReplicas> planning::plan_of_replicas(const ScenarioFile& file,
                                                               const ModelUse& use,
                                                               const Catalog& catalog) {
  Draft draft{.file = file, .catalog = catalog};
  draft.use = use;
  begin_plan(draft);
  if (!resolve_cluster(draft)) return tl::unexpected(std::move(draft.errors));
  auto model = resolve_model(draft, use);
  PlannedReplicas replicas;
  if (model) replicas.model = std::move(*model);
  if (draft.roles_known) replicas.precision = resolve_speeds_of_pools(draft, use);
  resolve_operations(draft);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  replicas.origin = std::move(static_cast<PlanOrigin&>(draft.plan));
  replicas.cluster = std::move(static_cast<PlannedCluster&>(draft.plan));
  return replicas;
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
