#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "exchange/frameworks/writers.h"
#include "exchange/yaml_text.h"
#include "sim/base/text/printable.h"

// The YAML file of `maxtext.trainers.pre_train.train`, over base.yml. Keys, types and allowed
// values: AI-Hypercomputer/maxtext maxtext-v0.2.4 (538fe7a3f3376d94cf3f04e77741aa6d7e8efa45),
// src/maxtext/configs/base.yml and types.py; what goes together: types.py, utils/train_utils.py,
// layers/attention_op.py and layers/moe.py; the dimensions of a model as configs/models/*.yml give
// them.
namespace reckon::frameworks::maxtext {
namespace {

constexpr const char* kSource =
    "AI-Hypercomputer/maxtext maxtext-v0.2.4, src/maxtext/configs/base.yml and types.py";

/// Two devices of JAX a chip; the two cores of a v4 or v5p are one ("megacore" in
/// src/maxtext/utils/accelerator_to_spec_map.py).
constexpr std::string_view kTwoDevices[] = {"TPU-v2", "TPU-v3", "TPU-v7x"};

void refuse_layout(const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  if (std::ranges::find(kTwoDevices, l.pool->accelerator->name) != std::end(kTwoDevices))
    refused.add("cluster.pools." + l.pool->name,
                fmt::format("{}, whose chips are two devices of JAX", l.pool->accelerator->name),
                "TPU-v4, v5e, v5p or v6e");
  if (a.zero_stage == 2)
    refused.add("strategy.zero_stage", "zero_stage 2",
                "zero_stage: 1 (shard_optimizer_over_data) or 3 (fsdp)");
  if (a.recompute != Recompute::full)
    refused.add("strategy.recompute", fmt::format("recompute: {}", to_text(a.recompute)),
                "recompute: full");
  if (!a.overlap)
    refused.add("strategy.overlap", "transfers that wait for arithmetic (XLA decides)",
                "overlap: true");
  if (a.context % 2 != 0 && a.context > 1)  // reorder_sequence
    refused.add("strategy.context", fmt::format("context parallelism of {}, odd", a.context),
                "an even context");
  if (a.pipeline == 1) return;
  if (a.schedule != PipelineSchedule::gpipe)
    refused.add("strategy.schedule", fmt::format("schedule: {}", to_text(a.schedule)),
                "schedule: gpipe");
  if (a.micro_batches % a.pipeline != 0)
    refused.add(
        "strategy.pipeline",
        fmt::format("{} micro-batches in {} stages, not a multiple", a.micro_batches, a.pipeline),
        "another global_batch or micro_batch");
  if (l.model && l.model->layers % a.pipeline != 0)
    refused.add("strategy.pipeline",
                fmt::format("{} stages of {} blocks, not alike", a.pipeline, l.model->layers),
                "a pipeline that divides the blocks");
}

/// Each axis of the mesh, inside the nodes (or slices) as far as it goes, the others between them.
void add_mesh(Json& file, const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  struct Axis {
    std::string name;
    int degree;
  };
  const std::string data = a.zero_stage == 3 ? "fsdp" : "data";
  const std::vector<Axis> axes{{a.sequence_parallel ? "tensor_sequence" : "tensor", a.tensor},
                               {"context", a.context},
                               {"expert", a.expert},
                               {data, a.data / a.expert},
                               {"pipeline", a.pipeline}};
  const int nodes_per_slice = l.pool->slice ? l.pool->slice->hosts : 1;
  int left = l.accelerators_per_node * nodes_per_slice;
  Json inside, between;
  for (const char* own : {"data", "fsdp"}) {  // base.yml leaves both to JAX (-1)
    inside[fmt::format("ici_{}_parallelism", own)] = 1;
    between[fmt::format("dcn_{}_parallelism", own)] = 1;
  }
  for (const Axis& axis : axes) {
    const int here = std::gcd(axis.degree, left);
    left /= here;
    inside[fmt::format("ici_{}_parallelism", axis.name)] = here;
    between[fmt::format("dcn_{}_parallelism", axis.name)] = axis.degree / here;
  }
  file.update(inside);
  file.update(between);
  if (left > 1)
    refused.add("strategy", "degrees that do not fill the nodes one after the other",
                "degrees that divide the accelerators of a node, or are their multiples");
}

/// What the ring of Transformer Engine v2.16 takes: transformer_engine/jax/cpp_extensions/
/// attention.py (_FusedAttnCPWithP2PHelper) and nvte_get_fused_attn_backend. Without a fused kernel
/// it would compute on, with the mask of another order of tokens.
void refuse_ring(const LaunchLayout& l, Refusals& refused) {
  if (l.pool->accelerator->vendor != "NVIDIA")
    refused.add("strategy.context",
                fmt::format("context parallelism on {}", l.pool->accelerator->name), "context: 1");
  if (l.job->precision == Precision::fp32)
    refused.add("strategy.context", "context parallelism in fp32 on GPUs", "precision: bf16");
  if (!l.model) return;
  if (l.model->dropout > 0)
    refused.add("strategy.context", "context parallelism with dropout on GPUs", "context: 1");
  if (l.model->head_width > 128 || l.model->head_width % 8 != 0)
    refused.add("strategy.context",
                fmt::format("context parallelism of heads of width {} on GPUs (a multiple of 8 up "
                            "to 128)",
                            l.model->head_width),
                "context: 1");
}

/// By default context parallelism reorders the tokens, and attention on GPUs masks by their index.
void add_context(Json& file, const LaunchLayout& l, Refusals& refused) {
  if (l.layout.context == 1 || l.is_tpu()) return;
  refuse_ring(l, refused);
  file["attention"] = "cudnn_flash_te";
  file["context_parallel_strategy"] = "ring";
  file["context_parallel_load_balance"] = true;
  file["packing"] = false;
}

/// The block of MaxText that has the plan's; "": there is none.
std::string block_of(const TransformerDimensions& d) {
  const bool windowed = d.window > 0 && d.window < d.sequence_length;
  if (d.alibi || windowed || d.parallel_residual || d.rotary_width != 0 || d.dense_layers > 0 ||
      d.shared_feed_forward > 0)
    return "";
  if (d.rms_norm && d.gated_feed_forward && d.activation == ActivationKind::silu && !d.bias &&
      d.positions == 0) {
    if (d.experts > 0)
      return d.qk_norm ? "qwen3_moe" : d.qkv_bias || !d.normalized_experts ? "" : "mixtral";
    return d.qk_norm ? "qwen3" : d.qkv_bias ? "qwen2" : "llama2";
  }
  const bool gpt3 = !d.rms_norm && !d.gated_feed_forward && d.bias && d.positions > 0 &&
                    d.activation == ActivationKind::gelu && d.experts == 0 &&
                    d.kv_heads == d.heads && d.tied_output;
  return gpt3 ? "gpt3" : "";
}

void add_model(Json& file, const LaunchLayout& l, Refusals& refused) {
  if (!l.model) return;
  const TransformerDimensions& d = *l.model;
  const std::string block = block_of(d);
  if (block.empty()) {
    refused.add("model", fmt::format("the blocks of model {}", l.job->model.name()),
                "a model of blocks as Llama, Mixtral, Qwen 2 or 3 or GPT-3 have");
    return;
  }
  file["decoder_block"] = block;
  file["base_emb_dim"] = d.hidden;
  file["base_num_query_heads"] = d.heads;
  file["base_num_kv_heads"] = d.kv_heads;
  file["head_dim"] = d.head_width;
  file["base_mlp_dim"] = d.experts > 0 ? d.expert_feed_forward : d.feed_forward;
  file["base_num_decoder_layers"] = d.layers;
  file["vocab_size"] = d.vocabulary;
  file["logits_via_embedding"] = d.tied_output;
  file["enable_dropout"] = d.dropout > 0;
  if (d.dropout > 0) file["dropout_rate"] = d.dropout;
  if (block == "gpt3") {
    file["mlp_activations"] = Json::array({"gelu"});
    file["trainable_position_size"] = d.positions;
    file["normalize_embedding_logits"] = false;
    file["fused_qkv"] = true;
    return;
  }
  file["mlp_activations"] = Json::array({"silu", "linear"});
  file["rope_max_timescale"] = std::int64_t(d.rotary_theta);
  if (d.qk_norm) file["use_qk_norm"] = true;
  if (d.qkv_bias) file["attention_bias"] = true;
  if (d.experts == 0) return;
  file["base_moe_mlp_dim"] = d.expert_feed_forward;
  file["num_experts"] = d.experts;
  file["num_experts_per_tok"] = d.experts_per_token;
  if (block == "qwen3_moe") file["norm_topk_prob"] = d.normalized_experts;
  // A kernel for TPUs; without it each expert's rows are multiplied by jax.lax.ragged_dot.
  if (!l.is_tpu()) file["megablox"] = false;
}

void add_batch(Json& file, const LaunchLayout& l) {
  const Layout& a = l.layout;
  // A pass is of all devices; a pipeline has all micro-batches of a step in one.
  const std::int64_t at_once = a.pipeline > 1 ? a.micro_batch * a.micro_batches : a.micro_batch;
  file["per_device_batch_size"] = double(at_once * a.data) / double(l.processes());
  file["gradient_accumulation_steps"] = a.pipeline > 1 ? 1 : a.micro_batches;
  file["max_target_length"] = l.job->model.sequence_length();
  file["steps"] = l.job->steps;
  if (a.pipeline == 1) return;
  file["num_pipeline_microbatches"] = a.micro_batches;
  file["num_layers_per_pipeline_stage"] = l.model ? l.model->layers / a.pipeline : 1;
  file["num_pipeline_repeats"] = 1;
}

void add_optimizer(Json& file, const LaunchLayout& l, Refusals& refused) {
  const PlannedOptimizer& o = l.job->optimizer_settings;
  const bool adam = l.job->optimizer == Optimizer::adamw;
  if (!adam && (o.momentum != 0 || o.weight_decay != 0))
    refused.add("optimizer", "momentum or weight decay of sgd",
                "optimizer: adamw, or momentum: 0 and weight_decay: 0");
  if (!adam && l.layout.zero_stage == 1)  // utils/sharding.py looks for Adam's state
    refused.add("optimizer", "optimizer: sgd with zero_stage 1",
                "optimizer: adamw, or zero_stage: 0 or 3");
  if (o.warmup_steps > l.job->steps)
    refused.add(
        "optimizer",
        fmt::format("a warm-up of {} steps in a training of {}", o.warmup_steps, l.job->steps),
        fmt::format("warmup_steps: {} or less", l.job->steps));
  file["opt_type"] = adam ? "adamw" : "sgd";
  if (adam) {
    file["adam_b1"] = o.beta1;
    file["adam_b2"] = o.beta2;
    file["adam_eps"] = o.epsilon;
    file["adam_weight_decay"] = o.weight_decay;
  }
  file["gradient_clipping_threshold"] = o.clip_norm;  // 0: none
  file["learning_rate"] = o.learning_rate;
  file["lr_schedule_type"] = "cosine";  // to where it began: constant
  file["learning_rate_final_fraction"] =
      o.schedule == LearningRateSchedule::constant ? 1.0 : o.final_fraction;
  file["warmup_steps_fraction"] =
      double(o.warmup_steps) / double(std::max<std::int64_t>(1, l.job->steps));
}

void add_precision(Json& file, const LaunchLayout& l, Refusals& refused) {
  const Precision p = l.job->precision;
  const bool fp8 = p == Precision::fp8 && !l.is_tpu();
  if (p != Precision::fp32 && p != Precision::bf16 && !fp8)
    refused.add("precision",
                fmt::format("precision {} on {}", to_text(p), l.pool->accelerator->name),
                "precision: bf16 or fp32");
  if (fp8 && l.layout.pipeline == 1 && l.layout.micro_batches > 1)
    refused.add(
        "precision",
        fmt::format("precision fp8 with {} micro-batches accumulated", l.layout.micro_batches),
        "precision: bf16, or a micro_batch that needs one pass");
  if (fp8 && l.model && l.model->experts > 0)
    refused.add("precision", "precision fp8 of experts", "precision: bf16");
  const char* working = p == Precision::fp32 ? "float32" : "bfloat16";
  file["dtype"] = working;
  file["weight_dtype"] = "float32";
  file["grad_dtype"] = l.job->fp32_gradients ? "float32" : working;
  if (fp8) file["quantization"] = "fp8";
}

}  // namespace

LauncherFile write(const LaunchLayout& l, Refusals& refused) {
  refuse_other_models(refused, l);
  refuse_steps_of_rate(refused, l);
  refuse_layout(l, refused);
  Json file = {{"base_config", "base.yml"},
               {"run_name", as_file_name(l.name)},
               {"hardware", l.is_tpu() ? "tpu" : "gpu"}};
  add_mesh(file, l, refused);
  if (l.layout.zero_stage == 1) file["shard_optimizer_over_data"] = true;
  add_context(file, l, refused);
  file["optimizer_memory_host_offload"] = l.layout.offload_optimizer;
  file["remat_policy"] = "full";
  add_model(file, l, refused);
  add_batch(file, l);
  add_optimizer(file, l, refused);
  add_precision(file, l, refused);
  file["enable_checkpointing"] = l.save_every.has_value();
  if (l.save_every) {
    file["checkpoint_period"] = *l.save_every;
    file["async_checkpointing"] = l.job->checkpoint.save_mode == SaveMode::async;
    // At SIGTERM it ends in any case; by base.yml without a save.
    file["enable_autocheckpoint"] = l.saves_on_notice();
  }
  file["data_shuffle_seed"] = l.seed;
  LauncherFile out{.name = "maxtext.yml",
                   .text = header(l, kMaxtextVersion, kSource) + yaml_text(file),
                   .launcher = Launcher::python,
                   .program =
                       "-m maxtext.trainers.pre_train.train \"$CONFIG\" "
                       "base_output_directory=\"$CHECKPOINTS\""};
  out.left_to_program.emplace_back(
      "data and tokenizer: dataset_type, dataset_path, tokenizer_path");
  if (l.layout.context > 1)
    out.left_to_program.push_back(
        l.is_tpu() ? "context parallelism gathers all keys and values "
                     "(context_parallel_strategy), the forecast has a ring"
                   : fmt::format("samples of {} tokens each: with context parallelism no shorter "
                                 "ones are packed together (packing: false)",
                                 l.job->model.sequence_length()));
  return out;
}

}  // namespace reckon::frameworks::maxtext
