#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/fact.h"
#include "sim/base/money.h"
#include "sim/base/printed_currency.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/planned/cluster.h"
#include "sim/scenario/planned/workload.h"
#include "sim/scenario/processor_rates.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/step_evidence.h"

// A Plan is a scenario with every name resolved and every default filled in from the catalog: an
// immutable value that holds all that the simulator and the executor need, so neither looks
// anything up again. What-if = copy, change, run.
namespace reckon {

/// What a plan is called, what it was made of, and what its maker has to say of it.
struct PlanOrigin {
  std::string name;
  std::optional<std::chrono::sys_seconds> start;
  std::uint64_t seed = 1;
  std::string catalog_digest;
  std::vector<std::string> calibrations;  // overlays of the catalog
  std::string prices_as_of;               // oldest price used; "" where none is known
  Currency currency;                      // in which texts print money
  std::vector<std::string> warnings;
  std::vector<Source> sources;  // the catalog's, so that a Fact can be printed
};

/// What is trained, and what is asked about it.
struct PlannedTraining {
  std::vector<PlannedWorkload> jobs;  // one, or several that share the pools
  int replications = 1000;
  std::vector<Expectation> expect;
  /// Of the first job's step; nullopt: not asked. Other jobs have their factors alone
  /// (PlannedWorkload::residual).
  std::optional<StepEvidence> evidence;

  /// The job of a plan that has one (checked). Who may be given several asks `jobs`.
  PlannedWorkload& only_job();
  const PlannedWorkload& only_job() const;
};

struct Plan : PlanOrigin, PlannedCluster, PlannedTraining {};

/// The pools of the chief and of the workers, the chief's first; without the fallback pools of
/// another.
std::vector<const PlannedPool*> gang_pools(const PlannedCluster& cluster);
/// Do processes on the pool's nodes compute? Those of workers do, and in TensorFlow the chief (AI
/// Platform's master) is a worker too. A chief without the accelerators that the workers have
/// (BASIC_TPU's, in front of a slice) tells them what to do and computes nothing. A fallback pool
/// does what the pool does that it is a fallback of.
bool computes(const PlannedCluster& cluster, const PlannedPool& pool);
/// The gang's pools that compute, one at least.
std::vector<const PlannedPool*> computing_pools(const PlannedCluster& cluster);

/// Resolves names, fills in defaults, applies the service's rules (valid GPU counts, where a GPU is
/// offered, one zone for all accelerator types), prices. All errors at once, at their place in the
/// file. What the simulator does not cover yet is refused by name.
Expected<Plan> make_plan(const ScenarioFile& file, const Catalog& catalog);

/// The plan as if it had but that job, with the job's own residual where it has one: what the step
/// model is asked about.
Plan plan_of_job(const Plan& plan, std::size_t job);

/// One assumed number that a plan, or a part of one, really rests on, and how to change it.
template <class Where>
struct AssumptionOf {
  std::string what;  // "provisioning of a node of pool p100"
  std::string key;   // stable: "pools.p100.provisioning"; also the random stream's entity
  std::string unit;  // "s", "USD/h", "fraction"
  double value = 0, low = 0, high = 0;  // in `unit`; 5th and 95th percentile
  SourceId source{};
  bool affects_step =
      false;  // the step model must be run again when it changes; else only the cluster's life
  /// As if the number were known to be so: low = high = value.
  std::function<void(Where&, double)> set;
};
using PlanAssumption = AssumptionOf<Plan>;
/// Of a plan with one job (plan_of_job()).
std::vector<PlanAssumption> assumptions_of(const Plan& plan);
/// Those of a pool that a pass of the model on one of its accelerators, or CPUs, rests on.
std::vector<AssumptionOf<PlannedCluster>> assumptions_of_pass(const PlannedCluster& cluster,
                                                              std::size_t pool,
                                                              const ModelGraph& model,
                                                              Precision precision);
/// How the key of PlannedWorkload::samples_factor begins.
inline constexpr std::string_view kSamplesFactor = "workload.samples_to_accuracy";

/// How the keys of prices begin: PriceSpread::market follows.
inline constexpr std::string_view kPriceOf = "price.";

/// Steps of so many samples each. The training stays as long in samples, to an accuracy it has
/// those of the law; steps and evaluations (every so many epochs, and at the end where the last one
/// does not fall on it) follow.
void change_batch(PlannedWorkload& job, std::int64_t global_batch);
/// How many evaluation passes have been made after so many steps: one follows the step in which
/// each `evaluate_every_epochs` end, and the last step.
std::int64_t evaluations_after(const PlannedWorkload& job, std::int64_t steps_done);

}  // namespace reckon
