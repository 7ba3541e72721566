#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/plan.h"

// What the parts of make_plan share while a plan is being made. Each part adds its errors and goes
// on; a part that needs what an earlier one could not resolve says nothing, so that one mistake
// gives one message.
namespace reckon::planning {

/// The model that runs on the accelerators and how, as the scenario says it of a training or of a
/// service.
struct ModelUse {
  const ModelSpec* model = nullptr;  // nullptr: the container's profile, or nothing, says it
  const ContainerSpec* container = nullptr;  // a program of the user's own
  std::optional<std::int64_t> sequence_length;
  std::optional<Precision> precision;
  std::string stack;
};
ModelUse use_of(const WorkloadSpec& workload);

struct Draft {
  const ScenarioFile& file;
  const Catalog& catalog;
  Plan plan;
  Diagnostics errors;
  const ProviderRules* provider = nullptr;  // from resolve_place on
  std::vector<bool> resolved;  // by pool: machine and accelerator are known and may stand together
  bool region_known = false, roles_known = false;
  bool workload_known = false, strategy_known = false;
  std::optional<ModelUse> use;  // nullopt: the scenario has no workload

  const Scenario& scenario() const { return file.scenario; }
  void error(std::string_view path, std::string what, std::string hint = "") {
    errors.push_back({Severity::error, file.places.find(path), std::move(what), std::move(hint)});
  }
  /// Understood, but no model of ours covers it: refused, never ignored.
  void not_yet(std::string_view path, std::string subject, std::string hint = "") {
    error(path, std::move(subject) + " is not simulated yet", std::move(hint));
  }
  void warn(std::string text) { plan.warnings.push_back(std::move(text)); }

  const PoolSpec& spec(const PlannedPool& pool) const {
    return scenario().cluster.pools[index(pool.id)];
  }
  /// "cluster.pools.p100" or, below it, "cluster.pools.p100.nodes".
  std::string path(const PlannedPool& pool, std::string_view below = "") const;
  bool all_resolved() const;
};

/// "a, b and c".
std::string join(const std::vector<std::string>& words, std::string_view last = " and ");
std::string join(const std::vector<int>& counts, std::string_view last = " or ");

/// An operational number as the quantity that it is.
template <class Quantity>
Fact<Quantity> fact_of(const Fact<double>& number) {
  Fact<Quantity> fact{Quantity{number.value}, number.source};
  fact.low = Quantity{number.low};
  fact.high = Quantity{number.high};
  fact.assumed = number.assumed;
  return fact;
}
inline Fact<Seconds> seconds_fact(const Fact<double>& number) { return fact_of<Seconds>(number); }

/// tier.cpp: the file with the pools that its scale tier stands for, at
/// the tier's place; as it is where it names none. Errors where there is no
/// such tier, or pools beside one.
ScenarioFile with_pools_of_tier(const ScenarioFile& file, const Catalog& catalog,
                                Diagnostics& errors);
/// jobs.cpp: the plans of several jobs that share the pools, each made as
/// if it were alone, as one. `make` makes the plan of a file with one workload.
Expected<Plan> plan_of_jobs(const ScenarioFile& file, const Catalog& catalog,
                            const std::function<Expected<Plan>(const ScenarioFile&)>& make);
/// make_plan.cpp: what the replicas of a service are and run on.
struct PlannedReplicas {
  PlanOrigin origin;
  PlannedCluster cluster;
  ModelGraph model;
  Precision precision = Precision::fp32;
};
/// Of a file that has the service's pool and no workload.
Expected<PlannedReplicas> plan_of_replicas(const ScenarioFile& file, const ModelUse& use,
                                           const Catalog& catalog);
/// The service whose rules apply: the scenario's, else the provider's first. nullptr: the catalog
/// does not know it, which resolve_place reports.
const ServiceRules* service_of(const ClusterSpec& cluster, const Catalog& catalog);
/// Those whose node pools of accelerators grow and shrink, for hints: "gke, eks or aks".
std::string autoscaling_services(const Catalog& catalog);

// The parts, in the order in which make_plan calls them.
void resolve_expectations(Draft& draft);          // rules.cpp
void refuse_what_is_not_simulated(Draft& draft);  // refusals.cpp
void resolve_fabric(Draft& draft);                // fabric.cpp
bool resolve_place(Draft& draft);                 // place.cpp; false: whose machines is not known
void resolve_pools(Draft& draft);                 // pools.cpp
void resolve_nodes(Draft& draft, PlannedPool& pool, const PoolSpec& spec);  // one of its parts
void check_where_accelerators_are(Draft& draft);                            // place.cpp
void assign_roles(Draft& draft);                                            // roles.cpp
void resolve_fallbacks(Draft& draft);  // autoscaling/fallbacks.cpp
/// karpenter.cpp: the machines among which Karpenter chooses, as its fallback pools.
void resolve_karpenter(Draft& draft);
/// node_auto_provisioning.cpp: the same of GKE's node pools.
void resolve_node_auto_provisioning(Draft& draft);
void resolve_autoscalers(Draft& draft);   // autoscalers.cpp
void resolve_provisioning(Draft& draft);  // provisioning.cpp, as the next two
/// A node's longest run and the time until there is capacity; not given: the catalog's.
void make_flex_start(const Draft& draft, PlannedPool& pool, std::optional<Seconds> run,
                     std::optional<Seconds> wait);
/// Of a pool with an on-demand price that the catalog knows.
void price_flex_start(const Draft& draft, PlannedPool& pool);
void resolve_workload(Draft& draft);                        // training/workload.cpp
void resolve_strategy(Draft& draft, PlannedWorkload& job);  // training/strategy.cpp
bool resolve_batch(Draft& draft, PlannedWorkload& job);     // training/batch.cpp; false: not known
void resolve_stages(Draft& draft, PlannedWorkload& job);    // stages.cpp; of a mixed pipeline
void resolve_length(Draft& draft, PlannedWorkload& job);    // training/workload.cpp
void resolve_restart(Draft& draft, PlannedWorkload& job);   // restart.cpp
void resolve_speeds(Draft& draft);                          // speeds.cpp, as the next
/// Links, efficiencies and rates of the pools; the precision that their workers compute in.
Precision resolve_speeds_of_pools(Draft& draft, const ModelUse& use);
/// training/model.cpp; nullopt: reported, or the container's program is not known by its model.
std::optional<ModelGraph> resolve_model(Draft& draft, const ModelUse& use);
/// The same file: the part of the model that is trained.
std::optional<ModelGraph> resolve_finetune(Draft& draft, const WorkloadSpec& workload,
                                           ModelGraph model);
void resolve_rules(Draft& draft);        // rules.cpp
void resolve_disruptions(Draft& draft);  // disruptions.cpp
void resolve_reclaim(Draft& draft);      // of spot nodes alone; likewise
void resolve_shortage(Draft& draft);     // of spot capacity; likewise
/// training/workload.cpp: steps of so many samples; a length that is given in steps keeps those.
void take_batch(PlannedWorkload& job, const TrainLength& train, std::int64_t global_batch);
/// Of a job whose batch and steps are known.
void resolve_optimizer_settings(PlannedWorkload& job, const OptimizerSettings& given);

/// trace.cpp: times at which each of `nodes` node slots is taken, and the length of the trace.
struct ReclaimTimes {
  std::vector<std::vector<Seconds>> by_slot;
  Seconds length{};
};
Parsed<ReclaimTimes> reclaim_times(const TraceReclaim& trace,
                                   const std::filesystem::path& directory, int nodes);

}  // namespace reckon::planning
