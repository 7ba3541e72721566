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
#include "sim/scenario/layout.h"
#include "sim/scenario/plan_prices.h"
#include "sim/scenario/processor_rates.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/step_evidence.h"

// A Plan is a scenario with every name resolved and every default filled in from the catalog: an
// immutable value that holds all that the simulator and the executor need, so neither looks
// anything up again. What-if = copy, change, run.
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
/// Kinds that cut the model's state or the model.
bool cuts_the_model(StrategyKind kind);
/// Layout::stops_recomputing of a job of that kind.
bool stops_recomputing(StrategyKind kind);

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

/// What a real run does in each step, complete. The rules: kernels/sgd_momentum.h, kernels/adamw.h.
struct PlannedOptimizer {
  double learning_rate = 0.1, momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;  // of the gradient; 0: none
  LearningRateSchedule schedule = LearningRateSchedule::constant;
  std::int64_t warmup_steps = 0;  // linear, from 0
  std::int64_t decay_every = 0;   // schedule step: optimizer steps between two decays
  double decay_factor = 0.1;
  double final_fraction = 0;  // schedule cosine: of the learning rate, at the last step
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
  double total_samples = 0;                // to train on
  std::optional<Convergence> convergence;  // training to an accuracy: total_samples by the batch
  /// Samples that a run to an accuracy needs over total_samples; 1 and certain for other lengths.
  Fact<double> samples_factor{1.0};
  std::int64_t steps = 0;  // optimizer steps: ceil(total_samples / global_batch)
  std::optional<double> evaluate_every_epochs;
  double evaluations = 0;  // passes over the validation set
  PlannedStrategy strategy;
  PlannedCheckpoint checkpoint;
  std::optional<PlannedRestart> restart;  // nullopt: the scenario does not say
  /// Ids of embedding tables are drawn by p(k) ~ 1 / (k + 1)^s, row 0 most often; 0: all alike.
  Fact<double> zipf_exponent{0.0};
};
/// How the job lies on its accelerators now: the strategy's layout, with the data ranks that the
/// other degrees leave of its accelerators, and the micro-batches of its global batch.
Layout layout_of(const PlannedWorkload& job);

struct PlannedPool {
  PoolId id{};
  std::string name;
  Role role = Role::worker;
  Machine machine;
  std::optional<Accelerator> accelerator;
  int accelerators_per_node = 0;
  std::optional<TpuSlice>
      slice;  // a node of the pool is then the whole slice, created or reclaimed as one
  int nodes_initial = 1, nodes_min = 1, nodes_max = 1;
  bool autoscaling = false;
  CapacityType pricing = CapacityType::on_demand;
  /// The pool, by its index, that has the same hardware and role and whose nodes this one's replace
  /// while they do not come. No job is placed here but in its stead.
  std::optional<std::size_t> stands_in_for;
  /// The NodePool of Karpenter, by its index in PlannedCluster::karpenter, whose nodes these are. A
  /// pool that Karpenter scales has one such pool for each machine and capacity type that may serve
  /// its pods: itself, and its fallback pools. Its own nodes have no preference.
  std::optional<std::size_t> node_pool;
  /// Under node auto-provisioning: the place of the pool's rule among the priorities of the
  /// ComputeClass, 0 first.
  int rank = 0;
  ProvisioningModel provisioning_model = ProvisioningModel::standard;
  Fact<Seconds> capacity_wait;              // of flex-start: request to capacity
  std::optional<Seconds> max_run_duration;  // of a node, from ready; nullopt: none
  Fact<Seconds> pool_creation;  // of a pool that is made for its first node: request to there
  /// How long this pool's own nodes are waited for before the request is withdrawn; nullopt: the
  /// autoscaler's max_node_provision_time. Set on the pool that is stood in for.
  std::optional<Seconds> patience;
  NodePrice price;
  std::optional<PlannedReservation> reservation;
  Seconds minimum_rental{};           // a node is billed for at least that; 0: the provider's rule
  Fact<Seconds> provisioning;         // request to schedulable, drivers included: median; range =
                                      // 5th..95th percentile
  Efficiency efficiency;              // of the accelerator at the workload's precision; a worker
                                      // on CPUs has its `launch` only
  Fact<Seconds> host_step;            // of a worker on CPUs: its own time of a step, outside layers
  LinkClass peer_link, network_link;  // between accelerators of one node; between nodes
  Fact<double> cpu_flops_per_vcpu;    // parameter server's update and CPU training, FLOP/s
  Fact<BytesPerSecond> cpu_memory_bandwidth_per_vcpu;  // the same: a vCPU's share of the host's
  /// Of a worker on CPUs of a machine that was probed, in place of the two before. nullptr: it was
  /// not.
  std::shared_ptr<const WorkerRates> measured_rates;
};

/// Rules of the service the cluster runs under; numbers of catalogs/operations.yaml.
struct AutoscalerRules {
  Seconds scan_interval{}, scale_down_unneeded_time{}, scale_down_delay_after_add{},
      max_node_provision_time{};
  Seconds node_group_backoff_initial{}, node_group_backoff_max{}, node_group_backoff_reset{};
  double scale_down_utilization_threshold = 0.5;
  int max_nodes_per_scale_up = 1000;
};
struct RetryRules {  // Kubernetes Job
  int backoff_limit = 6;
  Seconds base{}, cap{};  // base * 2^k, capped
  bool counts_disruptions =
      false;  // false: podFailurePolicy ignores DisruptionTarget (reclaim, maintenance)
};
struct BillingRules {
  Seconds granularity{}, minimum{};
  Seconds free_if_reclaimed_within{};  // GCE: no charge when preempted in the first minute
  HourlyRate management;               // the cluster's fee
};
struct JobStartRules {  // from "nodes ready" to "first step"
  Fact<Seconds> image_pull, framework_start;
  Fact<Seconds> compile;  // graph compilation of the first step (TPU: XLA)
};
struct FrameworkRules {
  Fact<Bytes> reserve;  // of an accelerator, gone before the first tensor: runtime, kernels, NCCL
  Fact<Bytes> communicator;       // buffers of each axis of the layout after the first
  Fact<double> fragmentation;     // reserved by the caching allocator over allocated, less 1
  Bytes buffers_per_parameter{};  // of the stack, besides gradients and optimizer
  bool keeps_scores = false;      // the stack's attention keeps its softmax's output
  Fact<double> memory_spread;     // memory_deviation where nothing comparable was measured
  /// ln(measured peak / predicted) of the tensors: mean and standard deviation of one more run; 0:
  /// the prediction is exact.
  double memory_mean = 0, memory_deviation = 0;
  Fact<double> step_jitter;       // standard deviation over mean of one worker's step time
  Fact<double> overlap_slowdown;  // of arithmetic, seconds a second of transfer behind it; TPU: 0
  Fact<double> expert_imbalance;  // rows of the busiest expert-parallel rank over the mean
};
/// Switches between the nodes. Nodes stand leaf by leaf in the order of their ranks.
struct PlannedFabric {
  int nics = 1;            // of a node
  bool rails = false;      // NIC k of all nodes of a leaf is on switch k of it
  int nodes_per_leaf = 0;  // 0: all are on one
  double oversubscription = 1;
  bool in_network_reduction = false;
};
struct ReclaimRules {
  ReclaimSpec law;  // applies to spot pools
  std::optional<Fact<Seconds>>
      assumed_mean;  // the scenario gives no law: the exponential one's mean is ours
  Seconds notice{};
  std::vector<std::vector<Seconds>>
      trace;               // law TraceReclaim: by node slot, times at which it is taken, ascending
  Seconds trace_length{};  // of the trace; it starts again at its end
};
/// When no spot node can be had. The cluster's spot pools share one market: times with and without
/// capacity take turns, each exponential, from the mean share of both at the start. A node asked
/// for in a shortage comes when it is over, and its usual delay later. Nodes that are there stay:
/// ReclaimRules says when those are reclaimed.
struct ShortageRules {
  bool on = false;
  Fact<Seconds> every, lasts;  // means: from the end of one to the begin of the next; of one
};
struct MaintenanceRules {
  bool on = false;
  Fact<Seconds> every;  // mean time between two events of one node
  Seconds notice{};
  Fact<Seconds> duration;  // the VM is away
  bool grouped = false;    // all nodes of a pool at the same time
};
struct FailureRules {
  bool on = false;
  Fact<Seconds> mtbf_per_accelerator;
  Fact<Seconds> repair;  // detection, node repair and pod replacement
  /// Failures in which nothing ends: the gang waits in a collective until a timeout finds it out.
  Fact<double> hang_share;
  Fact<Seconds> hang_detection;
  Fact<double> process_share;    // failures that end a process and leave its node
  Fact<double> straggler_share;  // of a step's time, waited for slow nodes; whether `on` or not
};

/// Electrical power of a run: docs/models/forecast.md. Shares are of an accelerator's printed
/// power.
struct PowerRules {
  Fact<double> busy_share, idle_share;        // while a step computes; all other time
  Fact<double> watts_per_vcpu, watts_per_gb;  // of the host and its memory
  Fact<double> pue;  // of the data centre: all its power over the machines'
  std::optional<Fact<double>> grams_per_kwh;  // CO2 of the region's grid; nullopt: not known
};

/// Nodes that are rented, where, at which prices and under whose rules: of a training and of a
/// served model alike.
struct PlannedCluster {
  Provider provider;
  ServiceRules service;
  std::string region, zone;
  std::vector<PlannedPool> pools;
  AutoscalerRules autoscaler;
  // What scales the pools, where it is not the cluster-autoscaler with fallback pools; at most one.
  std::optional<ClusterAutoscalerSpec> cluster_autoscaler;  // with expanders
  std::optional<KarpenterSpec> karpenter;
  std::optional<NodeAutoProvisioningSpec> node_auto_provisioning;
  std::optional<SlurmPowerSpec> slurm;
  /// Day and time of the cluster's first second, for schedules; nullopt: not known.
  std::optional<std::chrono::sys_seconds> begins;
  RetryRules retry;
  BillingRules billing;
  JobStartRules job_start;
  FrameworkRules framework;
  PlannedFabric fabric;
  ReclaimRules reclaim;
  ShortageRules shortage;
  MaintenanceRules maintenance;
  FailureRules failures;
  PowerRules power;
  HourlyRate storage_per_gb;  // checkpoints kept; 0 where unknown
  EgressRules egress;

  /// The first that is no fallback; nullptr: none. worker falls back to chief's.
  const PlannedPool* pool_with(Role role) const;
  /// Its autoscaler chooses among a pool and its fallback pools; else those take its pods only
  /// while its own nodes do not come.
  bool chooses_pools() const { return cluster_autoscaler || karpenter || node_auto_provisioning; }
};

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
  std::optional<StepEvidence> evidence;  // of the first job's step; nullopt: not asked

  /// The job of a plan that has one (checked). Who may be given several asks `jobs`.
  PlannedWorkload& only_job();
  const PlannedWorkload& only_job() const;
};

struct Plan : PlanOrigin, PlannedCluster, PlannedTraining {};

/// The pools of the chief and of the workers, the chief's first; without the fallback pools of
/// another.
std::vector<const PlannedPool*> gang_pools(const PlannedCluster& cluster);
/// Those of them whose processes compute, one at least: in TensorFlow the chief (AI Platform's
/// master) is a worker too. A chief without the accelerators that the workers have (BASIC_TPU's, in
/// front of a slice) tells them what to do and computes nothing.
std::vector<const PlannedPool*> computing_pools(const PlannedCluster& cluster);

/// Resolves names, fills in defaults, applies the service's rules (valid GPU counts, where a GPU is
/// offered, one zone for all accelerator types), prices. All errors at once, at their place in the
/// file. What the simulator does not cover yet is refused by name.
Expected<Plan> make_plan(const ScenarioFile& file, const Catalog& catalog);

/// The plan as if it had but that job: what the step model is asked about.
Plan plan_of_job(const Plan& plan, std::size_t job);

/// One assumed number that a plan, or a part of one, really rests on, and how to change it.
template <class Where>
struct AssumptionOf {
  std::string what;  // "provisioning of a node of pool p100"
  std::string key;   // stable: "pools.p100.provisioning"; also the random stream's entity
  std::string unit;  // "s", "USD/h", "fraction"
  double value = 0, low = 0, high = 0;
  SourceId source{};
  bool affects_step =
      false;  // the step model must be run again when it changes; else only the cluster's life
  /// As if the number were known to be so: low = high = value.
  std::function<void(Where&, double)> set;
};
using PlanAssumption = AssumptionOf<Plan>;
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

}  // namespace reckon
