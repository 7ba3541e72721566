#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/fact.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/layout.h"
#include "sim/scenario/scenario.h"

// A job of a Plan: what it trains, how it is split, when it saves.
namespace reckon {

/// Processes that hold the variables and apply the gradients [Li et al. 2014, OSDI '14].
struct ParameterServers {
  int count = 0;  // 0: the variables are on the chief's host
  bool synchronous = true;
  int backup_workers = 0;  // synchronous: the slowest, for whom a step does not wait
  int staleness = 0;       // asynchronous: steps that a worker may lead; 0: unbounded
  bool colocated = false;  // on the first workers' nodes, one a node
  ServerShards shards = ServerShards::even;
  Bytes partition{};  // 0: variables stay whole
  /// Of embedding tables the rows of a batch travel, and their ids; false: whole tables.
  bool sparse_embeddings = true;
  RowPartition rows = RowPartition::mod;  // of a table that several servers share
};

/// A job's workers, how they split it, and where wanted its parameter servers. Of a job with
/// parameter servers each accelerator is one copy of the model.
struct PlannedStrategy {
  StrategyKind kind = StrategyKind::single;  // the scenario's word: what is printed, and TF_CONFIG
  int workers = 1;                           // processes that compute
  int accelerators_per_worker = 1;           // 0: the worker computes on its CPUs
  AllReduceKind all_reduce = AllReduceKind::automatic;
  Layout layout;  // data and micro_batches: layout_of()
  std::optional<ParameterServers> servers;

  bool synchronous() const { return !servers || servers->synchronous; }
  int backup_workers() const { return servers ? servers->backup_workers : 0; }
  int server_count() const { return servers ? servers->count : 0; }
  /// Nodes that parameter servers take for themselves.
  int server_nodes() const { return servers && !servers->colocated ? servers->count : 0; }
  int accelerators() const {
    return workers * (accelerators_per_worker > 0 ? accelerators_per_worker : 1);
  }
};
/// Is the job run as one whose model or state is cut? By the word, not by the degrees: reckon's
/// workers, and the programs that the layout is exported to, treat the ranks of such a job alike
/// whatever its degrees are. Each writes its part of a checkpoint, so saves have several writers,
/// and the planner and explain vary the degrees of those words alone. A step and its memory follow
/// from the layout (Layout::whole()): a cut job whose degrees are all 1 computes and holds what a
/// data-parallel one does.
inline bool cuts_the_model(const PlannedStrategy& strategy) {
  return traits_of(strategy.kind).cuts;
}

enum class Optimizer { sgd_momentum, adamw, adamw_8bit, lion, adafactor, muon };
/// Our worker and parameter servers apply it; the others are simulated.
constexpr bool is_trained_here(Optimizer o) {
  return o == Optimizer::sgd_momentum || o == Optimizer::adamw;
}
/// Where the scenario names none: AdamW for sequences, SGD with momentum for all others.
Optimizer default_optimizer(SampleUnit unit);
constexpr auto words_of(Optimizer) {
  return std::array{Word<Optimizer>{"sgd", Optimizer::sgd_momentum},
                    Word<Optimizer>{"adamw", Optimizer::adamw},
                    Word<Optimizer>{"adamw_8bit", Optimizer::adamw_8bit},
                    Word<Optimizer>{"lion", Optimizer::lion},
                    Word<Optimizer>{"adafactor", Optimizer::adafactor},
                    Word<Optimizer>{"muon", Optimizer::muon}};
}

/// What a real run does in each step, complete. The rules: kernels/optimizer/sgd_momentum.h,
/// kernels/optimizer/adamw.h.
struct PlannedOptimizer {
  double learning_rate = 0.1, momentum = 0.9;  // factor on the update; share that is kept each step
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // AdamW's, as in kernels/optimizer/adamw.h
  double weight_decay = 0;
  double clip_norm = 0;  // L2 norm of the gradient at most; 0: none
  LearningRateSchedule schedule = LearningRateSchedule::constant;
  std::int64_t warmup_steps = 0;  // linear, from 0
  std::int64_t decay_every = 0;   // schedule step: optimizer steps between two decays
  double decay_factor = 0.1;      // on the learning rate, at each decay
  double final_fraction = 0;      // schedule cosine: of the learning rate, at the last step
};

/// What happens between a provider's notice and the end of the node (sim/cluster/notice.h).
struct PlannedNotice {
  OnNotice policy = OnNotice::save;
  bool stated = false;         // by the scenario; else it follows from the program
  bool own_program = false;    // a container of the user's runs, not reckon's worker
  Fact<Seconds> reaction;      // from the notice until the program knows
  Fact<double> writer_spread;  // of one writer's time: standard deviation of its logarithm
  bool between_steps = false;  // the step under way is finished first
};

/// Checkpoints in two tiers: these, and every so many of them in the storage too.
struct PlannedLocalCheckpoint {
  LocalTier to = LocalTier::peer_memory;
  Seconds every{};            // of useful work between two
  int replicas = 1;           // copies of each part on as many nodes, its own included
  Fact<BytesPerSecond> disk;  // local_disk: what a node writes and reads
};

struct PlannedCheckpoint {
  CheckpointSpec::Mode mode = CheckpointSpec::Mode::optimal;
  Seconds interval{};  // of useful work between two saves; mode optimal: set by the forecast
                       // (Young/Daly)
  SaveMode save_mode = SaveMode::blocking;
  PlannedNotice notice;
  Fact<Seconds> save_overhead;  // fixed part (serialisation, barrier) of a save
  Storage storage;
  std::optional<PlannedLocalCheckpoint> local;
};

/// How the job goes on when a part of it is lost (sim/cluster/restart.h). A job without one starts
/// all its processes again.
struct PlannedRestart {
  RestartKind kind = RestartKind::full;
  int spares = 0;       // warm_spare: nodes beyond the gang's
  int min_workers = 0;  // elastic: it does not go on with fewer
  ElasticBatch batch = ElasticBatch::fixed;
  Fact<Seconds> regroup;  // all but full: from the loss until the communicators stand again
};

/// What comparable runs say of one of several jobs (sim/accuracy/plan_evidence.h). Its own plan,
/// plan_of_job(), has it in its pools and its framework.
struct JobResidual {
  /// Efficiency's, of the pools that compute on accelerators; nullopt: what they have.
  std::optional<Fact<double>> step_spread;
  double memory_mean = 0, memory_deviation = 0;  // FrameworkRules'; of ln
};

/// The data set's name where the scenario says its size itself.
inline constexpr std::string_view kGivenDataset = "given";

struct PlannedWorkload {
  std::string name;                    // of the job
  std::string path = "workload";       // where the scenario has it: "jobs.a.workload"
  std::optional<std::size_t> same_as;  // index of the job that this one repeats at another time
  Seconds submit{};
  ModelGraph model;
  Dataset dataset;  // resolved or inline
  Precision precision = Precision::fp32;
  std::string stack;            // as the scenario names it; "": it does not
  bool fp32_gradients = false;  // kept, summed and reduced in fp32 whatever the precision
  /// Blocks of each pipeline stage, where the scenario says them or a published run prints them.
  /// Empty: as evenly as can be.
  std::vector<int> stage_blocks;
  /// Pools of a mixed pipeline: those, by index, that the replicas of each stage run on. Empty: all
  /// stages run on all computing pools, and each is as slow as the slowest of them.
  std::vector<std::vector<std::size_t>> stage_pools;
  Optimizer optimizer = Optimizer::sgd_momentum;
  PlannedOptimizer optimizer_settings;  // for a real run
  DataSpec data;                        // for a real run; its path is relative to the scenario
  /// Samples of one optimizer step, all workers. What it holds beyond one pass of all copies
  /// (strategy.layout.micro_batch) is accumulated before the update.
  std::int64_t global_batch = 1;
  double total_samples = 0;  // to train on
  double epochs = 0;         // the same, where the scenario says it so; 0: it does not
  std::optional<Convergence> convergence;  // training to an accuracy: total_samples by the batch
  /// Samples that a run to an accuracy needs over total_samples; 1 and certain for other lengths.
  Fact<double> samples_factor{1.0};
  std::int64_t steps = 0;  // optimizer steps: ceil(total_samples / global_batch)
  std::optional<double> evaluate_every_epochs;
  double evaluations = 0;  // a count: passes over the validation set
  PlannedStrategy strategy;
  PlannedCheckpoint checkpoint;
  std::optional<PlannedRestart> restart;  // nullopt: the scenario does not say
  /// Ids of embedding tables are drawn by p(k) ~ 1 / (k + 1)^s, row 0 most often; 0: all alike.
  Fact<double> zipf_exponent{0.0};
  /// Of a job beside others; nullopt: the plan's pools and framework have it, or nothing is known.
  std::optional<JobResidual> residual;
};
/// How the job lies on its accelerators now: the strategy's layout, with the data ranks that the
/// other degrees leave of its accelerators, and the micro-batches of its global batch.
Layout layout_of(const PlannedWorkload& job);

}  // namespace reckon
