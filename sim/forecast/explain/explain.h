#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/scenario/plan.h"
#include "sim/step/step.h"

// Why a step takes as long as it does, and what would change that: the step model asked again with
// one thing changed at a time. No life of the cluster is simulated, so all of it is there at once.
namespace reckon {

/// Of one step at steady state. Asynchronous training: of one worker's own step.
struct Phase {
  std::string name;  // "forward", "backward", "weight update", "exposed communication", ...
  Seconds time{};
  double share = 0;  // of all phases
};

struct LayerGroupTime {
  std::string name;  // Layer::group, the layer's own name where it has none
  int layers = 0;
  Seconds forward{}, backward{};
  double share = 0;  // of the step
  std::int64_t parameters = 0;
  bool bound_by_memory = false;  // most of its time is spent in layers that wait for memory
};

/// The step after a change, and what the whole training then takes and costs at that pace: without
/// start-up, checkpoints and interruptions, on the nodes that the strategy uses. Samples to train
/// on stay the same; whether the model converges as well is not modelled.
struct Change {
  std::string what;
  /// The option by which `reckon plan` considers it, such as "--nodes"; "": outside of its space.
  std::string plan_option;
  Seconds step{};
  SamplesPerSecond throughput{};
  Seconds training{};
  std::optional<Usd> cost;  // nullopt: a price is unknown
};

struct CrossoverRow {
  int workers = 0;
  std::vector<SamplesPerSecond> throughput;  // by strategy
  std::size_t best = 0;
};
/// All-reduce against synchronous parameter servers by number of workers, each worker as in the
/// plan.
struct Crossover {
  std::vector<std::string> strategies;
  std::string server_machine;
  SamplesPerSecond one_worker{};  // alone, without communication between workers
  std::vector<CrossoverRow> rows;
};

struct Explanation {
  std::string scenario;
  std::string engine;
  StepEstimate step;
  std::int64_t tokens_per_sample = 0;  // 0: the model reads no tokens
  int accelerators = 0;
  MemoryEstimate memory;
  std::vector<Phase> phases;             // in the order of the step
  std::vector<LayerGroupTime> layers;    // in the order of the network
  Change now;                            // the plan as it is
  std::vector<Change> what_would_help;   // shortest training first; those that change nothing last
  std::optional<Crossover> crossover;    // nullopt: TPU slices, models that are cut
  std::optional<StepEvidence> evidence;  // the plan's
};

/// The plan must fit in memory.
Explanation explain(const Plan& plan, const NetworkModel& network);

// Its parts.
std::vector<Phase> phases_of(const StepEstimate& step, const PlannedStrategy& strategy);
std::vector<LayerGroupTime> layer_groups(const ModelGraph& model, const StepEstimate& step);
/// Nodes of the pool that the job's strategy uses; pools that do not compute: their first ones.
int nodes_used(const Plan& plan, const PlannedWorkload& job, const PlannedPool& pool);
/// Per hour of training at steady state, of a plan with one job: the nodes in use and the cluster's
/// fee.
std::optional<Usd> running_cost_per_hour(const Plan& plan);
Change change_of(std::string what, const Plan& changed, const StepEstimate& step);
/// Every change that applies to the plan and fits in memory.
std::vector<Change> changes_that_apply(const Plan& plan, const StepEstimate& now,
                                       const NetworkModel& network);
std::optional<Crossover> crossover_of(const Plan& plan, const NetworkModel& network);
/// The plan with so many workers, each with its batch as before.
Plan with_workers(const Plan& plan, int workers);

}  // namespace reckon
