#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/catalog.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/scenario_autoscalers.h"
#include "sim/scenario/scenario_karpenter.h"
#include "sim/scenario/scenario_prices.h"
#include "sim/scenario/scenario_trace.h"
#include "sim/scenario/scenario_words.h"

// The what-if file as plain structs: exactly what the user wrote, nothing resolved. Field names are
// the keys of the file. `optional` and empty mean "not given". plan.h turns it into a Plan with the
// catalog's help.
namespace reckon {

// ---- workload
// ----------------------------------------------------------------------------------------------
struct ModelByName {
  std::string name;
};
struct ModelFromHuggingFace {
  std::string config;
};  // path, relative to the scenario
/// A network as another tool writes its graph; the path is relative to the scenario.
struct ModelFromGraphFile {
  enum class Format { onnx, fx };
  Format format = Format::onnx;
  std::string file;
};
struct ModelFromTransformer {
  TransformerDimensions dimensions;
  std::string name = "transformer";
};
/// Not written as such: what a file of another tool says, for the sample length that the workload
/// gives (exchange/model_files.h).
struct ModelFromGraph {
  ModelGraph graph;
};
struct ModelFromLayers {
  std::vector<std::map<std::string, std::string>> layers;
};
using ModelSpec = std::variant<ModelByName, ModelFromHuggingFace, ModelFromTransformer,
                               ModelFromLayers, ModelFromGraph, ModelFromGraphFile>;

struct Finetune {
  std::string method;
  int rank = 0;    // lora, qlora, dora; adapters: their inner width
  int layers = 0;  // last_layers: so many layers with weights are trained
};

struct DatasetByName {
  std::string name;
};
struct DatasetInline {
  double samples = 0;
  Bytes bytes_per_sample{};
};
using DatasetSpec = std::variant<DatasetByName, DatasetInline>;

/// Exactly one is given.
struct TrainLength {
  enum class Unit { epochs, samples, steps, tokens, to_accuracy } unit = Unit::epochs;
  double amount = 0;        // to_accuracy: 0..1
  std::string starts_from;  // to_accuracy: what the training begins with; "": not said
};

/// A stage of a pipeline whose stages differ.
struct StageSpec {
  std::vector<std::string> pools;  // that its replicas run on
  std::optional<int> blocks;       // of the model; not given: as even as can be
};

struct StrategySpec {
  StrategyKind kind = StrategyKind::single;
  std::optional<int> workers, accelerators_per_worker, parameter_servers, backup_workers, staleness;
  std::optional<bool> synchronous;
  std::optional<int> zero_stage, data, tensor, pipeline, context, expert, micro_batch, interleave;
  std::optional<bool> sequence_parallel, offload_optimizer, overlap;
  std::optional<PipelineSchedule> schedule;
  std::optional<Recompute> recompute;
  AllReduceKind all_reduce = AllReduceKind::automatic;
  std::optional<bool> colocated;          // parameter servers on the workers' nodes
  std::optional<ServerShards> shards;     // default: even
  std::optional<Bytes> partition;         // larger variables are cut into pieces of at most so much
  std::optional<bool> sparse_embeddings;  // default: true
  std::optional<RowPartition> partition_strategy;  // of tables that servers share; default: mod
  std::vector<StageSpec> stages;                   // of `pipeline`; empty: all alike, on all pools
};

/// Frequent checkpoints near the job, of which the storage has every so many.
struct LocalCheckpointSpec {
  LocalTier to = LocalTier::peer_memory;
  Seconds every{};
  std::optional<int> replicas;  // copies of each part, its node's own included
};

struct CheckpointSpec {
  enum class Mode { none, interval, optimal } mode = Mode::optimal;
  Seconds interval{};                 // mode interval
  std::string storage;                // catalog name; "" = the provider's object store
  std::optional<OnNotice> on_notice;  // not given: by the program
  SaveMode save_mode = SaveMode::blocking;
  std::optional<LocalCheckpointSpec> local;
};

/// How it goes on when a part of it is lost.
struct RestartSpec {
  RestartKind kind = RestartKind::full;
  std::optional<int>
      spares;              // warm_spare: nodes beyond the gang's; default: all that its pools have
  std::optional<int> min;  // elastic: nodes; default: half of the gang's
  ElasticBatch batch = ElasticBatch::fixed;
  friend bool operator==(const RestartSpec&, const RestartSpec&) = default;
};

struct ContainerSpec {
  std::string image;
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> metrics;
  std::variant<std::monostate, std::string, Seconds> profile;  // a model's name, or a step time
};

/// What a real run needs beside the optimizer's name; the simulator's forecast does not change with
/// it. Not given: by the family of the model (plan_optimizer.cpp).
struct OptimizerSettings {
  std::optional<double> learning_rate, momentum, beta1, beta2, epsilon, weight_decay, clip_norm;
  std::optional<LearningRateSchedule> schedule;
  std::optional<std::int64_t> warmup_steps, decay_every;
  std::optional<double> decay_factor, final_fraction;
};

/// What a real run reads; the simulator reads `dataset`.
struct DataSpec {
  DataFormat format = DataFormat::synthetic;
  std::string path;  // of a file or a folder, relative to the scenario
};

struct WorkloadSpec {
  std::optional<ModelSpec> model;
  std::optional<Finetune> finetune;
  std::optional<DatasetSpec> dataset;
  std::optional<TrainLength> train;
  std::optional<std::int64_t> sequence_length;
  std::optional<Precision> precision;
  std::optional<bool> fp32_gradients;
  std::string optimizer;  // "sgd" (default for images), "adamw" (default for sequences), ...
  OptimizerSettings optimizer_settings;
  std::optional<DataSpec> data;
  std::optional<int> batch_per_accelerator, global_batch;
  std::optional<double> zipf_exponent;  // of the ids that embedding tables are asked for
  std::optional<double>
      evaluate_every_epochs;  // evaluation: {every_epochs: 4}; absent: none is run
  std::string stack;          // software stack whose efficiencies apply; "" = any
  StrategySpec strategy;
  std::optional<CheckpointSpec> checkpoint;
  std::optional<RestartSpec> restart;
  std::optional<ContainerSpec> container;
  std::optional<Seconds> profiled_step;  // measured, of the scenario as it is written
};

// ---- cluster
// -----------------------------------------------------------------------------------------------
struct MachineByName {
  std::string name;
};
struct MachineInline {
  int vcpus = 0;
  Bytes memory{};
  BytesPerSecond network{};
  // What it costs: a rate, or what was paid for it over the time it is written off, with the power
  // it draws at a tariff; or nothing, which is unknown.
  std::optional<MoneyText> price, purchase;
  std::optional<Seconds> amortised_over;
  double power_watts = 0;
  std::optional<MoneyText> tariff;  // of a joule
  /// Names of the catalog's links: of `network`, and between accelerators of one node; "":
  /// ethernet, and what the accelerator has.
  std::string network_link, peer_link;
};
using MachineSpec = std::variant<std::monostate, MachineByName, MachineInline>;

struct AcceleratorSpec {
  std::string type;
  int count = 1;
};
struct TpuSpec {
  std::string type, slice;
};
struct NodesSpec {
  int initial = 1, min = 1, max = 1;
};

struct PoolSpec {
  std::string name;
  std::optional<Role> role;
  MachineSpec machine;
  std::optional<AcceleratorSpec> accelerator;
  std::optional<TpuSpec> tpu;
  NodesSpec nodes;
  bool autoscaling = false;
  CapacityType pricing = CapacityType::on_demand;
  /// Name of the pool whose nodes this one's replace while they cannot be had; "": none.
  std::string stands_in_for;
  /// After so long without a node that was asked for; not given: the autoscaler's patience.
  std::optional<Seconds> after;
  ProvisioningModel provisioning = ProvisioningModel::standard;
  std::optional<Seconds> max_run_duration;  // of flex-start: a node ends at that age
  std::optional<Seconds> capacity_wait;     // of flex-start: until there is capacity
};

/// How the nodes are wired. Not given: all nodes are on one switch that is never full.
struct FabricSpec {
  std::optional<int> nics;    // of a node; each accelerator uses the nearest
  std::optional<bool> rails;  // the k-th NIC of all nodes is on a switch of its own
  std::optional<int> nodes_per_leaf;
  std::optional<double> oversubscription;  // of a leaf: bandwidth of its nodes over its uplinks
  std::optional<bool> in_network_reduction;
};

struct ClusterSpec {
  Provider provider;
  std::optional<Service> service;  // the provider's own
  std::string region, zone;
  std::string scale_tier;       // AI Platform's; the catalog says what pools it is
  std::vector<PoolSpec> pools;  // empty beside a scale_tier, unless that leaves them to the user
  std::optional<FabricSpec> fabric;
  AutoscalerKind autoscaler = AutoscalerKind::cluster_autoscaler;
  // Each counts under its autoscaler.
  std::optional<ClusterAutoscalerSpec> cluster_autoscaler;
  std::optional<KarpenterSpec> karpenter;
  std::optional<NodeAutoProvisioningSpec> node_auto_provisioning;
  std::optional<SlurmPowerSpec> slurm;
  std::optional<SchedulerSpec> scheduler;  // of a trace
};

// ---- disruptions
// -------------------------------------------------------------------------------------------
struct NoReclaim {};
struct ExponentialReclaim {
  Seconds mean{};
};  // age of a node when it is reclaimed
struct WeibullReclaim {
  double shape = 1;
  Seconds scale{};
};
/// Bathtub of [Kadupitiya et al. 2020, "Modeling the temporally constrained preemptions of
/// transient cloud VMs"]: F(t) = A (1 - exp(-t/tau1) + exp((t - b)/tau2)), nodes live at most
/// `limit` (24 h).
struct BathtubReclaim {
  double a = 0;
  Seconds tau1{}, tau2{}, b{}, limit{};
};
/// Recorded, or generated from parameters that stand in the file: node k of the pool goes at the
/// k-th list's times.
struct TraceReclaim {
  std::string file;
  std::optional<Seconds> gap;  // overrides the file's own sampling interval
  struct Generate {
    Seconds mean{}, duration{};
    int nodes = 0;
    std::uint64_t seed = 0;
  };
  std::optional<Generate> generate;
};
using ReclaimSpec =
    std::variant<NoReclaim, ExponentialReclaim, WeibullReclaim, BathtubReclaim, TraceReclaim>;

struct MaintenanceSpec {
  Seconds every{};
  Seconds notice{};
  std::optional<bool> grouped;  // all nodes of a pool at once; not given: as the provider does it
};
struct FailuresSpec {
  Seconds mtbf_per_accelerator{};
  std::optional<double> hang_share;  // of failures, 0..1; not given: the catalog's
  std::optional<Seconds> hang_detection;
  std::optional<double> process_share;  // of failures, 0..1: a process ends, its node stays
};
/// Time of a step that is lost to slow nodes, besides what measured rates contain.
struct StragglersSpec {
  std::optional<double> share;  // 0..1; nullopt: typical, the catalog's
};
/// Spot capacity is there and gone in turn, each for an exponential time.
struct ShortageSpec {
  Seconds every{};  // mean time from the end of one shortage to the begin of the next
  Seconds lasts{};  // mean
};
struct DisruptionsSpec {
  std::optional<ReclaimSpec> preemption;
  std::optional<MaintenanceSpec> maintenance;
  std::optional<FailuresSpec> failures;
  std::optional<ShortageSpec> shortage;
  std::optional<StragglersSpec> stragglers;
  bool maintenance_off = false, failures_off = false, shortage_off = false;  // `maintenance: none`
};

// ---- the rest
// ----------------------------------------------------------------------------------------------
struct JobSpec {
  std::string name;
  Seconds submit{};
  std::optional<Seconds> every;  // submitted again after each such time, `times` times in all
  int times = 1;
  WorkloadSpec workload;
};
struct ForecastSpec {
  int replications = 1000;
  std::uint64_t seed = 1;
};

/// Is it answered by the serving part of a scenario?
bool is_of_serving(Metric metric);
/// Is it answered by the trace or the arrivals of a scenario?
bool is_of_trace(Metric metric);

/// One line of `expect:`. `value` is in SI units (seconds, USD, bytes, fraction, samples a second);
/// feasible: true is 1, false is 0. Time, cost, goodput and interruptions are distributions over
/// the replications: written without mean( ), p5( ), p50( ) or p95( ) they are the mean (p50 is
/// never implied), and `statistic` says so. Latency is one over the requests, and the only one that
/// has a p99. The others are one number each and have statistic none.
struct Expectation {
  std::string text;
  Metric metric = Metric::time;
  StepShare share = StepShare::compute;  // metric step_share
  Statistic statistic = Statistic::none;
  Comparison comparison = Comparison::le;
  double value = 0;
  /// Of an amount that is not in USD; the reader of the scenario turns it into `value` in USD, at
  /// `prices.usd_rate`, and keeps this.
  std::string currency;
  /// A time given as a date; the plan turns it into `value`, seconds from the scenario's start.
  std::optional<std::chrono::sys_seconds> date;
};
/// "p95(time) <= 48h". The error is a sentence with the allowed words.
Parsed<Expectation> parse_expectation(std::string_view text);
bool holds(double value, Comparison comparison, double bound);

// ---- serving
// -----------------------------------------------------------------------------------------------
struct ServingReplicasSpec {
  std::optional<int> initial;  // default: what the first rate needs
  int min = 1, max = 1;
  int standby = 0;                           // ready beside them, without requests
  std::optional<double> target_utilization;  // of the HorizontalPodAutoscaler, 0..1
};
struct ServingAutoscalerSpec {  // --horizontal-pod-autoscaler-* of the kube-controller-manager
  std::optional<Seconds> sync_period, downscale_stabilization;
  std::optional<double> tolerance;
};
struct ServingBatchSpec {
  int max = 1;
  Seconds wait{};  // of a request for others to fill its batch
  /// Measured: how long a replica is at work on a batch of so many requests; empty: by the model.
  std::map<double, Seconds> times;
};
struct ServingOverheadSpec {
  Seconds request{}, batch{};  // what each takes of a replica beside the forward pass
  Seconds latency{};           // of a request outside the queue, which keeps no replica busy
};

/// `serving:` as written: requests to a trained model on the pool with role inference.
struct ServingSpec {
  std::optional<ModelSpec> model;  // default: the workload's
  std::optional<std::int64_t> sequence_length;
  std::optional<Precision> precision;
  std::string stack;
  std::string pool;                         // default: the only one with role inference
  std::vector<double> requests_per_second;  // one, or 24: by the hour of the day, UTC
  Arrivals arrivals = Arrivals::poisson;
  ServingBatchSpec batch;
  ServingReplicasSpec replicas;
  ServingAutoscalerSpec autoscaler;
  Routing routing = Routing::random;
  int queue_limit = 1000;           // requests that wait at a replica; others are refused
  std::optional<Seconds> start_up;  // of a replica on a node that is there
  ServingOverheadSpec overhead;
  std::optional<Seconds> period;     // that is simulated
  std::string goal;                  // "p99(latency) <= 50ms", of `reckon plan`
  std::vector<std::string> clients;  // networks "10.0.0.0/8" that reach it from outside the cluster
};

/// `plan:` as written; read and checked, used by `reckon plan`.
struct PlanSpec {
  std::map<std::string, std::vector<std::string>>
      vary;                      // values as written; "1..64" stays one value
  std::string deadline, budget;  // "72h@95%", "20000 USD@90%"
  std::optional<Objective> objective;
  /// "gcp/us-central1/H100-SXM5-80" -> accelerators; with "/spot", "/on_demand" or "/reserved"
  /// behind it of those that are bought so, as providers count them.
  std::map<std::string, int> quota;
  std::string memory;                  // of an accelerator at most: "70GiB", "90%"; "": all
  std::optional<int> max_nodes;        // at once, of all pools
  std::vector<std::string> residency;  // jurisdictions a region may be under; empty: any
  std::optional<double> carbon_free;   // least share of its power, 0..1
  std::optional<double> energy_joules, co2_grams;  // of the run at most, means
  // Of several jobs:
  std::optional<Seconds> period;                 // all are done within it
  std::map<std::string, std::string> deadlines;  // by job, as `deadline`
};

/// `planned:` of a plan file: what it was made with. Kept, not used by the simulation.
struct PlannedSpec {
  int schema_version = 0;
  std::string reckon_version, catalog_digest, prices_as_of;
  std::vector<std::string> calibrations;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> forecast;  // dotted path -> text, as written
};

struct Scenario {
  std::string name;
  std::optional<std::chrono::sys_seconds> start;
  std::optional<WorkloadSpec> workload;
  ClusterSpec cluster;
  std::optional<PricesSpec> prices;
  DisruptionsSpec disruptions;
  std::vector<JobSpec> jobs;
  std::optional<TraceSpec> trace;
  std::optional<ArrivalsSpec> arrivals;
  std::optional<ServingSpec> serving;
  ForecastSpec forecast;
  std::vector<Expectation> expect;
  std::optional<PlanSpec> plan;
  std::optional<PlannedSpec> planned;

  /// Jobs that share a cluster, of which no plan is made.
  bool of_queue() const { return trace || arrivals; }
};

/// Where each value stood: path ("cluster.pools.p100.nodes.max") -> place; items of a list by their
/// `name`, by index
/// ("expect.0") where they have none. A block's place is its key's, a value's its own.
class Places {
 public:
  void set(std::string path, SourcePlace place) {
    places_.insert_or_assign(std::move(path), std::move(place));
  }
  /// The path's own place, else that of its nearest parent, else the whole file.
  SourcePlace find(std::string_view path) const;
  /// With everything below `from` also below `to` ("jobs.a.workload" as
  /// "workload").
  Places with_alias(const std::string& from, const std::string& to) const;
  std::string file;

 private:
  std::map<std::string, SourcePlace, std::less<>> places_;
};

struct ScenarioFile {
  Scenario scenario;
  Places places;
  std::filesystem::path directory;  // what relative paths in it are relative to
};

}  // namespace reckon
