#include <algorithm>
#include <array>
#include <optional>

#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

constexpr double kMostDegree = 16384;

/// TensorFlow's words, as which they are printed, and those without a framework.
std::vector<std::string> kind_texts() {
  std::vector<std::string> texts = texts_of<StrategyKind>();
  for (const StrategyTraits& strategy : kStrategies)
    if (!strategy.native.empty()) texts.emplace_back(strategy.native);
  return texts;
}

std::optional<StrategyKind> kind_of(std::string_view text) {
  const auto native = std::ranges::find(kStrategies, text, &StrategyTraits::native);
  const bool found = !text.empty() && native != kStrategies.end();
  return found ? native->kind : from_text<StrategyKind>(text);
}

/// Keys that mean something for a kind, besides kind, recompute and micro_batch.
std::vector<std::string_view> keys_of(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::single:
    case StrategyKind::tpu:
      return {};
    case StrategyKind::mirrored:
      return {"accelerators_per_worker", "all_reduce"};
    case StrategyKind::multi_worker_mirrored:
      return {"workers", "accelerators_per_worker", "all_reduce"};
    case StrategyKind::parameter_server:
      return {"workers",           "accelerators_per_worker",
              "parameter_servers", "mode",
              "backup_workers",    "staleness",
              "colocated",         "shards",
              "partition",         "sparse_embeddings",
              "partition_strategy"};
    case StrategyKind::sharded:
      return {"workers", "accelerators_per_worker", "zero_stage", "offload_optimizer"};
    case StrategyKind::model_parallel:
      return {"workers",    "accelerators_per_worker",
              "data",       "tensor",
              "pipeline",   "context",
              "expert",     "zero_stage",
              "schedule",   "interleave",
              "all_reduce", "sequence_parallel",
              "overlap",    "offload_optimizer",
              "stages"};
  }
  return {};
}

const Fields<StageSpec>& stage_fields() {
  Form pools = choice("a pool's name, or a list of names");
  pools.item = Form::Kind::text;
  pools.or_list = true;
  static const Fields<StageSpec> table{
      required(field<StageSpec>(
          "pool", pools,
          [](Reader& r, const YamlNode& n, StageSpec& s) {
            if (n.kind == YamlNode::Kind::list)
              s.pools = r.texts(n);
            else if (auto name = r.text(n))
              s.pools = {std::move(*name)};
          },
          "What the stage runs on: a pool, or those that its replicas are spread over.", "a100")),
      number_field("blocks", &StageSpec::blocks, whole(1, kMostDegree),
                   "Blocks of the model in this stage; default: as even as can be.", "12"),
  };
  return table;
}

/// Kinds that a key belongs to, for the hint.
std::string kinds_with(std::string_view key) {
  std::vector<std::string_view> kinds;
  for (const auto& kind : words_of(StrategyKind{})) {
    const auto keys = keys_of(kind.value);
    if (std::ranges::find(keys, key) != keys.end()) kinds.push_back(kind.text);
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

}  // namespace

const Fields<StrategySpec>& strategy_fields() {
  using S = StrategySpec;
  const std::vector<std::string> modes{"synchronous", "asynchronous"};
  const auto mode = [modes](Reader& r, const YamlNode& n, S& s) {
    if (const auto i = r.word(n, modes)) s.synchronous = *i == 0;
  };
  const auto kind = [texts = kind_texts()](Reader& r, const YamlNode& n, S& s) {
    if (const auto i = r.word(n, texts)) s.kind = *kind_of(texts[*i]);
  };
  static const Fields<S> table{
      required(field<S>("kind", Form{.kind = Form::Kind::word, .words = kind_texts()}, kind,
                        "How the work is spread over the accelerators.", "parameter_server")),
      number_field("workers", &S::workers, whole(1, kMostWorkers), "Worker processes.", "4"),
      number_field("accelerators_per_worker", &S::accelerators_per_worker, whole(0, 1024),
                   "Accelerators of one worker; 0: it computes on its CPUs.", "1"),
      number_field("parameter_servers", &S::parameter_servers, whole(0, kMostWorkers),
                   "Server processes; 0: the variables stay on the chief's host.", "2"),
      field<S>("mode", Form{.kind = Form::Kind::word, .words = modes}, mode,
               "Whether workers wait for each other in every step.", "synchronous"),
      number_field("backup_workers", &S::backup_workers, whole(0, kMostWorkers),
                   "Workers whose gradients a synchronous step does not wait for.", "1"),
      number_field("staleness", &S::staleness, whole(0, 1e6),
                   "Steps that an asynchronous worker may lead; 0: any number.", "4"),
      number_field("zero_stage", &S::zero_stage, whole(0, 3),
                   "What is sharded: 1 optimizer state, 2 and gradients, 3 and parameters.", "3"),
      number_field("data", &S::data, whole(1, kMostWorkers), "Data-parallel degree.", "8"),
      number_field("tensor", &S::tensor, whole(1, kMostDegree), "Tensor-parallel degree.", "8"),
      number_field("pipeline", &S::pipeline, whole(1, kMostDegree), "Pipeline stages.", "4"),
      number_field("context", &S::context, whole(1, kMostDegree), "Context-parallel degree.", "2"),
      number_field("expert", &S::expert, whole(1, kMostDegree), "Expert-parallel degree.", "8"),
      number_field("micro_batch", &S::micro_batch, whole(1, kMostBatch),
                   "Samples of one copy of the model in one pass; more are accumulated.", "1"),
      boolean_field(
          "sequence_parallel", &S::sequence_parallel,
          "Tensor-parallel ranks share the tokens of layers that are not sharded; true with tensor "
          "above 1.",
          "false"),
      word_field("schedule", &S::schedule, "Order of the passes in a pipeline.", "interleaved"),
      number_field("interleave", &S::interleave, whole(2, 1024),
                   "Parts of the network in one pipeline stage; needs schedule: interleaved.", "2"),
      boolean_field("overlap", &S::overlap,
                    "Transfers go on behind arithmetic; false: gradients (zero_stage 0 and 1), "
                    "sequence parallelism and interleaved stages are waited for.",
                    "false"),
      boolean_field("offload_optimizer", &S::offload_optimizer,
                    "The host keeps the optimizer's state and updates the parameters.", "true"),
      word_field("recompute", &S::recompute, "Activations computed again in the backward pass.",
                 "selective"),
      word_field("all_reduce", &S::all_reduce,
                 "Algorithm of the gradients' all-reduce; in_network needs "
                 "cluster.fabric.in_network_reduction.",
                 "ring"),
      boolean_field("colocated", &S::colocated,
                    "Parameter servers run on the workers' nodes, one on each of the first.",
                    "true"),
      word_field("shards", &S::shards,
                 "What a parameter server holds: an equal part of every variable, or whole "
                 "variables, in turn or to the server that has least.",
                 "balanced"),
      number_field(
          "partition", &S::partition, above_zero(Form::Kind::bytes, 1e15),
          "Larger variables are split into pieces of at most this size; needs shards other "
          "than even.",
          "64MB"),
      boolean_field("sparse_embeddings", &S::sparse_embeddings,
                    "Of embedding tables only the rows of a batch travel, with their ids; false: "
                    "whole tables.",
                    "false"),
      word_field("partition_strategy", &S::partition_strategy,
                 "Rows of an embedding table that servers share: row r with server r mod the "
                 "number of parts, or neighbours together.",
                 "div"),
      field<S>(
          "stages",
          Form{.kind = Form::Kind::list,
               .fields = &infos_of<stage_fields>,
               .item = Form::Kind::block},
          [](Reader& r, const YamlNode& n, S& s) {
            r.each(n, [&](const YamlNode& item) {
              StageSpec stage;
              if (read_fields(r, item, stage_fields(), stage)) s.stages.push_back(std::move(stage));
            });
          },
          "Stages of a mixed pipeline, in order: each on its own accelerators.",
          "[{pool: h100, blocks: 20}, {pool: a100, blocks: 12}]"),
  };
  return table;
}

void check_strategy(Reader& reader, const YamlNode& node, const StrategySpec& strategy) {
  const auto* kind = node.find("kind");
  if (kind == nullptr) return;
  const auto written = kind_of(kind->value.text);
  if (!written) return;  // reported already
  const auto keys = keys_of(*written);
  for (const auto& field : strategy_fields()) {
    const auto* entry = node.find(field.key);
    if (entry == nullptr || field.key == "kind" || field.key == "recompute" ||
        field.key == "micro_batch")
      continue;
    if (std::ranges::find(keys, field.key) == keys.end())
      reader.error(entry->key_at,
                   fmt::format("'{}' does not belong to strategy {}", field.key, to_text(*written)),
                   fmt::format("it belongs to {}", kinds_with(field.key)));
  }
  const bool synchronous = strategy.synchronous.value_or(true);
  if (const auto* entry = node.find("staleness"); entry != nullptr && synchronous)
    reader.error(entry->key_at, "staleness needs mode: asynchronous",
                 "synchronous workers never lead");
  if (const auto* entry = node.find("backup_workers"); entry != nullptr && !synchronous)
    reader.error(entry->key_at, "backup_workers needs mode: synchronous",
                 "asynchronous workers wait for nobody");
  if (const auto* entry = node.find("partition");
      entry != nullptr && strategy.shards.value_or(ServerShards::even) == ServerShards::even)
    reader.error(entry->key_at, "partition needs shards: round_robin or balanced",
                 "with even shards every variable is split among all servers");
  if (const auto* entry = node.find("partition_strategy");
      entry != nullptr && !strategy.sparse_embeddings.value_or(true))
    reader.error(entry->key_at, "partition_strategy needs sparse_embeddings",
                 "tables that travel whole are split like other variables");
  const bool interleaved = strategy.schedule == PipelineSchedule::interleaved;
  if (const auto* entry = node.find("interleave"); entry != nullptr && !interleaved)
    reader.error(entry->key_at, "interleave needs schedule: interleaved",
                 "the other schedules have one part of the network in a stage");
  if (strategy.backup_workers && strategy.workers && *strategy.backup_workers >= *strategy.workers)
    reader.error(node.find("backup_workers")->value.at,
                 fmt::format("{} backup workers of {} workers leave none to wait for",
                             *strategy.backup_workers, *strategy.workers),
                 "backup_workers must be below workers");
}

}  // namespace reckon
