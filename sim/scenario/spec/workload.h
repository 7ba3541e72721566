#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/catalog/catalog.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/spec/words.h"

// What is trained: `workload` of a scenario.
namespace reckon {

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
  Seconds decode{};               // of one vCPU, a sample
  double validation_samples = 0;  // 0: there are none
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
/// it. Not given: by the family of the model (resolve/training/optimizer.cpp).
struct OptimizerSettings {
  std::optional<double> learning_rate, momentum, beta1, beta2, epsilon, weight_decay, clip_norm;
  std::optional<LearningRateSchedule> schedule;
  std::optional<std::int64_t> warmup_steps, decay_every;
  std::optional<double> decay_factor, final_fraction;
};

/// What a real run reads; the simulator reads `dataset`.
struct DataSpec {
  DataFormat format = DataFormat::synthetic;
  std::string path;        // of a file or a folder, relative to the scenario; or s3://BUCKET/KEY
  std::string endpoint;    // of the store: "http://host:port"; "": the environment's
  std::string validation;  // as `path`, of the samples that evaluation passes read
  // Of images. Not given: crop random, resize 256/224 of the model's size, flip with crop random,
  // damaged fail.
  std::optional<ImageCrop> crop;
  std::optional<std::int64_t> resize;  // pixels of the shorter side, before crop center
  std::optional<bool> flip;
  std::optional<DamagedSample> damaged;
  // That read and decode ahead, of each rank. Not given: the machine's cores, shared by its ranks.
  std::optional<std::int64_t> threads;
};
/// Does `data` have samples for evaluation passes of our own worker? Where no path names them,
/// made-up ones and those that come with their test set. Characters have none: ids are of a file.
inline bool has_validation_set(const DataSpec& data) {
  if (data.format == DataFormat::characters) return false;
  return !data.validation.empty() || is_made_up(data.format) || has_test_set(data.format);
}
/// Of an object store, not of this machine's files.
inline bool is_store_location(std::string_view path) { return path.starts_with("s3://"); }

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
  std::optional<double> zipf_exponent;  // s of 1 / k^s, of the ids that tables are asked for
  std::optional<double>
      evaluate_every_epochs;  // evaluation: {every_epochs: 4}; absent: none is run
  std::string stack;          // software stack whose efficiencies apply; "" = any
  StrategySpec strategy;
  std::optional<CheckpointSpec> checkpoint;
  std::optional<RestartSpec> restart;
  std::optional<ContainerSpec> container;
  std::optional<Seconds> profiled_step;  // measured, of the scenario as it is written
};

}  // namespace reckon
