#include <fmt/format.h>

#include <algorithm>

#include "exchange/frameworks/toml_text.h"
#include "exchange/frameworks/writers.h"
#include "sim/step/memory/folded_model.h"

// The TOML file of `torchtitan.train --job.config_file`. Keys, types and allowed values:
// pytorch/torchtitan v0.2.2 (73a0e6979dd10b6b1904098eb3c8f62c18ab87ce), the last release with TOML
// files, torchtitan/config/job_config.py; what goes together:
// torchtitan/distributed/parallel_dims.py, distributed/pipeline_parallel.py,
// models/*/infra/parallelize.py and PyTorch's torch/distributed/pipelining/schedules.py.
namespace reckon::frameworks::torchtitan {
namespace {

constexpr const char* kSource = "pytorch/torchtitan v0.2.2, torchtitan/config/job_config.py";

/// torchtitan/models/llama3/__init__.py and models/qwen3/__init__.py.
struct Flavor {
  const char *model, *name;
  std::int64_t layers, hidden, heads, kv_heads, head_width, feed_forward, vocabulary;
  double theta;
  bool qk_norm = false, tied = false;
  std::int64_t experts = 0, experts_per_token = 0, expert_feed_forward = 0;
};
constexpr Flavor kFlavors[] = {
    {"llama3", "8B", 32, 4096, 32, 8, 128, 14336, 128256, 5e5},
    {"llama3", "70B", 80, 8192, 64, 8, 128, 28672, 128256, 5e5},
    {"llama3", "405B", 126, 16384, 128, 8, 128, 53248, 128256, 5e5},
    {"qwen3", "0.6B", 28, 1024, 16, 8, 128, 3072, 151936, 1e6, true, true},
    {"qwen3", "1.7B", 28, 2048, 16, 8, 128, 6144, 151936, 1e6, true, true},
    {"qwen3", "4B", 36, 2560, 32, 8, 128, 9728, 151936, 1e6, true, true},
    {"qwen3", "8B", 36, 4096, 32, 8, 128, 12288, 151936, 1e6, true},
    {"qwen3", "14B", 40, 5120, 40, 8, 128, 17408, 151936, 1e6, true},
    {"qwen3", "32B", 64, 5120, 64, 8, 128, 25600, 151936, 1e6, true},
    {"qwen3", "30B-A3B", 48, 2048, 32, 4, 128, 6144, 151936, 1e6, true, false, 128, 8, 768},
    {"qwen3", "235B-A22B", 94, 4096, 64, 4, 128, 12288, 151936, 5e6, true, false, 128, 8, 1536}};

bool is(const Flavor& f, const TransformerDimensions& d) {
  const bool plain = d.rms_norm && d.gated_feed_forward && !d.bias && !d.qkv_bias && !d.alibi &&
                     d.positions == 0 && d.window == 0 && d.rotary_width == 0 && d.dropout == 0 &&
                     !d.parallel_residual && d.shared_feed_forward == 0 && d.dense_layers == 0 &&
                     d.activation == ActivationKind::silu;
  const bool attention = f.heads == d.heads && f.kv_heads == d.kv_heads &&
                         f.head_width == d.head_width && f.theta == d.rotary_theta &&
                         f.qk_norm == d.qk_norm;
  // Where all blocks have experts, nothing is of the width of a dense one.
  const bool inner = f.experts > 0 ? f.expert_feed_forward == d.expert_feed_forward
                                   : f.feed_forward == d.feed_forward;
  return plain && attention && inner && f.layers == d.layers && f.hidden == d.hidden &&
         f.vocabulary == d.vocabulary && f.tied == d.tied_output && f.experts == d.experts &&
         f.experts_per_token == d.experts_per_token;
}

std::string flavor_names() {
  std::string text;
  for (const Flavor& f : kFlavors)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", f.model, f.name);
  return text;
}

const Flavor* flavor_of(const LaunchLayout& l, Refusals& refused) {
  if (!l.model) return nullptr;
  const auto* found =
      std::ranges::find_if(kFlavors, [&](const Flavor& f) { return is(f, *l.model); });
  if (found != std::end(kFlavors)) return found;
  refused.add("model", fmt::format("model {}", l.job->model.name()),
              "its flavors with other dimensions are in its own source: " + flavor_names());
  return nullptr;
}

/// seq_len_divisor of ParallelDims: also without tensor and context parallelism.
void refuse_sequence(const LaunchLayout& l, Refusals& refused) {
  const std::int64_t tokens = l.job->model.sequence_length();
  const std::int64_t divisor = 2 * std::int64_t{l.layout.tensor} * l.layout.context;
  if (tokens % divisor == 0) return;
  refused.add("sequence_length",
              fmt::format("sequences of {} tokens, no multiple of 2 x tensor x context = {}",
                          tokens, divisor),
              fmt::format("sequence_length: {}", (tokens / divisor + 1) * divisor));
}

void refuse_layout(const LaunchLayout& l, const Flavor* flavor, Refusals& refused) {
  const Layout& a = l.layout;
  const bool cut = a.tensor > 1 || a.pipeline > 1 || a.context > 1;
  if (a.zero_stage == 1)
    refused.add("strategy.zero_stage", "zero_stage 1",
                "zero_stage: 2 (parameters stay whole) or 3 (FSDP)");
  if (a.zero_stage == 0 && a.data > 1 && cut)
    refused.add("strategy.zero_stage", "copies of the whole model beside another parallelism",
                "zero_stage: 2 or 3");
  if (a.zero_stage == 0 && a.context > 1)
    refused.add("strategy.context", "context parallelism without ZeRO", "zero_stage: 2 or 3");
  if (a.zero_stage == 0 && a.expert > 1)  // it takes the ranks of FSDP
    refused.add("strategy.expert", "expert parallelism without ZeRO", "zero_stage: 2 or 3");
  if (a.tensor > 1 && !a.sequence_parallel)
    refused.add("strategy.sequence_parallel", "tensor parallelism without sequence parallelism",
                "sequence_parallel: true");
  if (a.recompute == Recompute::selective)
    refused.add("strategy.recompute", "recompute: selective (attention alone)",
                "recompute: none or full");
  if (a.offload_optimizer)
    refused.add("strategy.offload_optimizer",
                "an optimizer on the host with parameters on the accelerator",
                "offload_optimizer: false");
  if (!a.overlap)
    refused.add("strategy.overlap", "transfers that wait for arithmetic", "overlap: true");
  if (flavor != nullptr && std::string_view(flavor->model) == "qwen3" && a.pipeline > 1)
    refused.add("strategy.pipeline", "pipelines of qwen3", "pipeline: 1");
  if (a.pipeline > 1 && a.micro_batches < a.pipeline)
    refused.add("strategy.pipeline",
                fmt::format("{} micro-batches in {} stages, fewer than stages", a.micro_batches,
                            a.pipeline),
                "a larger global_batch, a smaller micro_batch or fewer stages");
  if (l.job->optimizer == Optimizer::sgd_momentum)
    refused.add("optimizer", "optimizer: sgd", "optimizer: adamw");
  if (l.job->optimizer_settings.clip_norm == 0)
    refused.add("optimizer", "gradients that are not clipped", "clip_norm: 1");
}

void add_precision(Json& file, const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  const bool fsdp = a.zero_stage >= 2 || a.context > 1;
  switch (l.job->precision) {
    case Precision::fp32:
      file["training"]["mixed_precision_param"] = "float32";
      return;
    case Precision::fp8:
      file["model"]["converters"] = Json::array({"quantize.linear.float8"});
      file["quantize"]["linear"]["float8"] = {{"recipe_name", "tensorwise"}};
      break;
    case Precision::mxfp8:
      file["model"]["converters"] = Json::array({"quantize.linear.mx"});
      file["quantize"]["linear"]["mx"] = {{"recipe_name", "mxfp8_cublas"}};
      break;
    case Precision::bf16:
      break;
    case Precision::fp16:
    case Precision::tf32:
    case Precision::nvfp4:
      refused.add("precision", fmt::format("precision {}", to_text(l.job->precision)),
                  "precision: bf16, fp32, fp8 or mxfp8");
      return;
  }
  file["training"]["mixed_precision_param"] = "bfloat16";
  if (!fsdp && (a.tensor > 1 || a.pipeline > 1))
    refused.add("precision", "mixed precision of tensor or pipeline parallelism without ZeRO",
                "zero_stage: 2 or 3");
}

/// The modules of each stage, where the plan's stages differ by a block.
Json modules_of_stages(const ModelGraph& model, int stages) {
  const FoldedModel folded(model);
  const std::vector<std::size_t>& first = folded.partition(stages).first_layers;
  std::vector<std::vector<std::string>> modules;
  std::size_t block = 0, at = 0;
  for (std::size_t k = 0; k < first.size(); ++k) {
    std::vector<std::string>& stage = modules.emplace_back();
    if (k == 0) stage.emplace_back("tok_embeddings");
    const std::size_t end = k + 1 < first.size() ? first[k + 1] : model.layers().size();
    for (; at < end; ++at)
      if (std::holds_alternative<Attention>(model.layers()[at].op))  // one a block
        stage.push_back(fmt::format("layers.{}", block++));
  }
  modules.back().insert(modules.back().end(), {"norm", "output"});
  return modules;
}

void add_pipeline(Json& p, const LaunchLayout& l) {
  const Layout& a = l.layout;
  p["pipeline_parallel_microbatch_size"] = a.micro_batch;
  switch (a.schedule) {
    case PipelineSchedule::gpipe:
      p["pipeline_parallel_schedule"] = "GPipe";
      break;
    case PipelineSchedule::one_forward_one_backward:
      p["pipeline_parallel_schedule"] = "1F1B";
      break;
    case PipelineSchedule::interleaved:
      p["pipeline_parallel_schedule"] = "Interleaved1F1B";
      break;
  }
  const std::int64_t blocks = l.model ? l.model->layers : 0;
  const std::int64_t parts = std::int64_t{a.pipeline} * a.interleave;
  if (blocks % parts != 0) {  // not of an interleaved schedule
    p["module_fqns_per_model_part"] = modules_of_stages(l.job->model, a.pipeline);
    return;
  }
  if (a.schedule == PipelineSchedule::interleaved)
    p["pipeline_parallel_layers_per_stage"] = blocks / parts;
  // As many blocks in each part as the plan has: by default one less at either end.
  p["pipeline_parallel_first_stage_less_layers"] = 0;
  p["pipeline_parallel_last_stage_less_layers"] = 0;
}

Json parallelism_of(const LaunchLayout& l) {
  const Layout& a = l.layout;
  const bool sharded = a.zero_stage >= 2;
  Json p = {{"data_parallel_replicate_degree", sharded ? 1 : a.data},
            {"data_parallel_shard_degree", sharded ? a.data : 1},
            {"tensor_parallel_degree", a.tensor},
            {"pipeline_parallel_degree", a.pipeline},
            {"context_parallel_degree", a.context},
            {"expert_parallel_degree", a.expert}};
  if (sharded) p["fsdp_reshard_after_forward"] = a.zero_stage == 3 ? "always" : "never";
  if (a.context > 1) p["context_parallel_rotate_method"] = "alltoall";
  // By default 1: each expert whole on one rank, tensor-parallel ranks among those that share them.
  if (a.expert > 1) p["expert_tensor_parallel_degree"] = a.tensor;
  if (a.pipeline > 1) add_pipeline(p, l);
  return p;
}

Json training_of(const LaunchLayout& l) {
  const Layout& a = l.layout;
  // A pipeline runs all micro-batches of a step at once; without one they are accumulated.
  const std::int64_t at_once = a.pipeline > 1 ? a.micro_batch * a.micro_batches : a.micro_batch;
  return {{"local_batch_size", at_once},
          {"global_batch_size", l.job->global_batch},
          {"seq_len", l.job->model.sequence_length()},
          {"max_norm", l.job->optimizer_settings.clip_norm},
          {"steps", l.job->steps},
          {"mixed_precision_reduce", "float32"}};
}

}  // namespace

LauncherFile write(const LaunchLayout& l, Refusals& refused) {
  const PlannedOptimizer& o = l.job->optimizer_settings;
  refuse_other_models(refused, l);
  refuse_steps_of_rate(refused, l);
  const Flavor* flavor = flavor_of(l, refused);
  refuse_layout(l, flavor, refused);
  refuse_sequence(l, refused);
  Json file;
  file["job"] = {{"description", l.name}};
  file["model"] = {{"name", flavor != nullptr ? flavor->model : ""},
                   {"flavor", flavor != nullptr ? flavor->name : ""}};
  file["optimizer"] = {{"name", "AdamW"},  {"lr", o.learning_rate},
                       {"beta1", o.beta1}, {"beta2", o.beta2},
                       {"eps", o.epsilon}, {"weight_decay", o.weight_decay}};
  const bool constant = o.schedule == LearningRateSchedule::constant;
  file["lr_scheduler"] = {{"warmup_steps", o.warmup_steps},
                          {"decay_type", constant ? "linear" : "cosine"},
                          {"min_lr_factor", constant ? 1.0 : o.final_fraction}};
  file["training"] = training_of(l);
  file["parallelism"] = parallelism_of(l);
  file["activation_checkpoint"] = {
      {"mode", l.layout.recompute == Recompute::none ? "none" : "full"},
      {"early_stop", l.layout.recompute != Recompute::none && l.layout.stops_recomputing}};
  file["checkpoint"] = {{"enable", l.save_every.has_value()}};
  if (l.save_every) {
    file["checkpoint"]["interval"] = *l.save_every;
    file["checkpoint"]["async_mode"] =
        l.job->checkpoint.save_mode == SaveMode::async ? "async" : "disabled";
  }
  add_precision(file, l, refused);
  file["debug"] = {{"seed", l.seed}};
  LauncherFile out{.name = "torchtitan.toml",
                   .text = header(l, kTorchtitanVersion, kSource) + "\n" + toml_text(file),
                   .program =
                       "-m torchtitan.train --job.config_file \"$CONFIG\" "
                       "--job.dump_folder \"$CHECKPOINTS\""};
  out.environment.emplace_back("PYTORCH_ALLOC_CONF", "expandable_segments:True");
  out.left_to_program.emplace_back(
      "data and tokenizer: training.dataset, training.dataset_path, model.hf_assets_path");
  if (!l.job->fp32_gradients && l.job->precision != Precision::fp32)
    out.left_to_program.emplace_back(
        "gradients are reduced in fp32, the forecast has them in the working precision "
        "(--set workload.fp32_gradients=true)");
  if (l.layout.context > 1)
    out.left_to_program.emplace_back(
        "context parallelism gathers all keys and values (the trainer does not read "
        "context_parallel_rotate_method), the forecast has a ring");
  note_notice(out, refused, l, kTorchtitanVersion);
  return out;
}

}  // namespace reckon::frameworks::torchtitan
