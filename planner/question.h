#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/change.h"
#include "planner/search/objective.h"
#include "sim/accuracy/evidence/evidence.h"
#include "sim/catalog/catalog.h"
#include "sim/catalog/regions.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/scenario.h"

// What `reckon plan` is asked: what may vary, what must hold, what is best. Made from a scenario
// with a `plan:` block, or from one that the command line's options were put into.
namespace reckon::planner {

/// "72h@95%": the value that holds with that probability; without one it holds for the mean, as in
/// `expect:`.
struct Limit {
  double value = 0;                   // seconds or USD
  std::optional<double> probability;  // 0..1, both excluded
  std::string text;                   // as written
};
/// The number that a limit is held against: the mean of the replications, or their quantile.
double held_against(const Limit& limit, const Quantiles& mean, const std::vector<double>& values);
double held_against(const Limit& limit, const std::vector<double>& values);  // in the limit's unit
double mean_of(const std::vector<double>& values);                           // in the values' unit

/// A share of a gang's nodes that is not spot.
struct BaseShare {
  double share = 0;  // 0..1, both excluded
  CapacityType bought = CapacityType::on_demand;
};

/// Nodes of the workers' pool as shares of the gang's, rounded up: from `least`, where it begins,
/// up to `most`. Of the same two the pool has a fixed size: more than one are spare nodes.
struct PoolBounds {
  std::string text;            // as written; "": as many as the gang, and no fewer
  double least = 1, most = 1;  // over the gang's nodes: 1 is as many
  bool autoscaled() const { return least < most; }
  int least_nodes(int gang) const;
  int most_nodes(int gang) const;
};

/// Between two checkpoints.
struct SaveInterval {
  CheckpointSpec::Mode mode = CheckpointSpec::Mode::optimal;
  Seconds every{};   // mode interval
  std::string text;  // as written
};

/// What may vary. A list of one value is what is kept.
struct Freedom {
  bool hardware = false;  // the catalog's machines; else the scenario's own pools
  std::vector<Provider> providers;
  std::vector<std::string> accelerators, machines, regions;  // canonical; empty: any
  bool zone = false;  // zones too: of these, or of all that are known
  std::vector<std::string> zones;
  std::vector<int> nodes;          // ascending
  std::vector<PoolBounds> bounds;  // besides which mixes are tried; empty: fixed at the gang's
  std::vector<CapacityType> pricing;
  /// The workers' pool is empty at first, and what scales it decides which nodes it gets and how
  /// they are bought, as the scenario configures it: Karpenter, node auto-provisioning, Slurm, an
  /// expander, a queue for capacity. `bounds` is then of one value, from nothing to the gang.
  bool as_scaled = false;
  std::vector<BaseShare> bases;                  // mixes with spot, besides nodes bought alike
  std::vector<std::string> fallbacks;            // durations, as written: Mix::patience
  std::vector<int> parameter_servers;            // ascending; empty: as in the scenario
  std::vector<std::string> server_machines;      // of parameter servers; empty: the scenario's
  std::vector<StrategyKind> kinds;               // empty: the scenario's
  std::vector<Recompute> recompute;              // empty: the scenario's
  bool precision = false;                        // each accelerator's own for training
  bool layouts = false;                          // all degrees of a cut model
  std::vector<SaveInterval> save_intervals;      // empty: the scenario's
  std::vector<std::string> checkpoint_storages;  // canonical; empty: the scenario's
  std::vector<RestartSpec> restarts;             // empty: the scenario says none
  // The batch: one of the first two as in the scenario, or free up to so many samples of a step.
  std::optional<int> batch_per_accelerator, global_batch;
  std::int64_t most_global_batch = 0;
};

/// With which words other commands read what the question was read from.
struct CommandWords {
  std::string file_options;     // " --layer a.yaml --set a.b=c"; without keys of `plan:`
  std::string catalog_options;  // " --catalog DIR --calibration FILE"
  std::string plan_file;        // that the first plan is written into; "": none
  std::string plan_command;     // this one, as it can be typed again; "": not from a command line
};

/// The scenario's text, and what is put over it before it is read.
struct Base {
  std::string text, name;  // name stands for the file in messages
  bool is_file = true;     // else `name` is no path: the command line's options made the text
  std::vector<std::string> overrides;
  std::vector<std::filesystem::path> layers;
  /// Reads what the scenario refers to (exchange/model_files.h); empty: nothing.
  std::function<Diagnostics(ScenarioFile&)> complete;
  CommandWords words;
  std::vector<Region> regions;         // of the catalog, where a limit speaks of them
  const Evidence* evidence = nullptr;  // of comparable runs; nullptr: none
};
/// The scenario, with what is put over it and what it refers to.
Expected<ScenarioFile> read(const Base& base);

struct Question {
  Base base;
  ScenarioFile file;  // the base as read
  Freedom may;
  std::optional<Limit> deadline, budget;
  /// "gcp/us-central1/H100-SXM5-80" -> accelerators, bought in any way; with "/spot" and the like
  /// behind it of those bought so.
  std::map<std::string, int> quota;
  std::optional<double> memory_share;  // of an accelerator's that may be used, 0..1
  std::optional<Bytes> memory;
  std::optional<int> max_nodes;        // at once
  std::vector<std::string> residency;  // jurisdictions that a region may be under; empty: any
  std::optional<double> carbon_free;   // least share of its power, 0..1
  std::optional<double> energy_joules, co2_grams;  // means of a run at most
  Objective objective = Objective::cost;
  std::vector<std::string> assumed;  // what was not said and how it is taken: sentences
  std::string batch_rule;            // whether a step's samples are held, and what it means if not
};

/// Reads the base and its `plan:` block. Errors stand at their place in the file.
Expected<Question> make_question(Base base, const Catalog& catalog);

/// make_plan(), its step moved by the base's evidence.
Expected<Plan> planned(const Base& base, const ScenarioFile& file, const Catalog& catalog);

/// The question's scenario with the changes, planned so. Refused where a pool has more nodes than
/// a scenario may say.
Expected<Plan> plan_with(const Question& question, std::span<const Change> changes,
                         const Catalog& catalog);

/// Is P(out of memory) at most kRiskOfAPlan, and no more used than the question allows?
bool fits(const Question& question, const MemoryEstimate& memory);

/// The numbers of "3", "1..8" or several of them, ascending; of a long range not every number.
std::vector<int> counts_of(const std::vector<std::string>& texts);

/// Do its parameter servers stand on the workers' nodes, one a node at most?
bool colocates_servers(const Question& question);

/// Keys of `plan.vary` in which the question leaves a choice, and those that it holds fixed.
struct SearchedKeys {
  std::vector<std::string> searched, held;
};
SearchedKeys searched_keys(const Question& question);

/// Does the scenario, or what is put over it, say how many replications a forecast has?
bool says_replications(const Question& question);

/// Name of the pool whose nodes compute: what the planner varies.
const PoolSpec& worker_pool(const Scenario& scenario);
/// The pool whose nodes hold parameters; nullptr: they run beside the workers.
const PoolSpec* server_pool(const Scenario& scenario);

}  // namespace reckon::planner
