#include <fmt/format.h>

#include "exchange/frameworks/writers.h"
#include "sim/base/text/shell_word.h"

// Arguments of Megatron-LM's pretrain_gpt.py as an array of bash. Names, types and allowed values:
// NVIDIA/Megatron-LM core_v0.15.0 (0d7e02bd26d3eb347ad8d1bef625002babfa6df7),
// megatron/training/arguments.py; what goes together: validate_args there,
// megatron/core/optimizer/, optimizer_param_scheduler.py and distributed/fsdp/.
namespace reckon::frameworks::megatron {
namespace {

constexpr const char* kSource = "NVIDIA/Megatron-LM core_v0.15.0, megatron/training/arguments.py";

class Arguments {
 public:
  void flag(const char* name) { text_ += fmt::format("    {}\n", name); }
  template <class Value>
  void value(const char* name, const Value& v) {
    text_ += fmt::format("    {} {}\n", name, v);
  }
  void word(const char* name, const std::string& v) { value(name, shell_word(v)); }
  std::string text() const { return "MEGATRON_ARGS=(\n" + text_ + ")\n"; }

 private:
  std::string text_;
};

void add_degrees(Arguments& out, const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  out.value("--tensor-model-parallel-size", a.tensor);
  if (a.sequence_parallel && a.tensor > 1) out.flag("--sequence-parallel");
  out.value("--pipeline-model-parallel-size", a.pipeline);
  out.value("--context-parallel-size", a.context);
  if (a.expert > 1) out.value("--expert-model-parallel-size", a.expert);
  if (l.model && l.model->experts > 0 && a.tensor > 1)
    out.value("--expert-tensor-parallel-size", a.tensor);
  if (a.pipeline > 1 && a.schedule == PipelineSchedule::gpipe)
    refused.add("strategy.schedule", "schedule: gpipe", "schedule: 1f1b or interleaved");
  if (a.pipeline > 1 && a.schedule == PipelineSchedule::interleaved) {
    out.value("--num-virtual-stages-per-pipeline-rank", a.interleave);
    if (!a.overlap) out.flag("--no-overlap-p2p-communication");
    if (!a.overlap && a.pipeline == 2)
      refused.add("strategy.overlap",
                  "transfers that wait for arithmetic between 2 interleaved stages",
                  "overlap: true, or more stages");
  }
  if (l.model && l.model->layers % a.pipeline != 0)
    refused.add("strategy.pipeline",
                fmt::format("{} stages of {} blocks, not alike", a.pipeline, l.model->layers),
                "a pipeline that divides the blocks");
  out.value("--micro-batch-size", a.micro_batch);
  out.value("--global-batch-size", l.job->global_batch);
}

/// ZeRO 1 is Megatron's distributed optimizer, 2 and 3 are Megatron FSDP.
void add_sharding(Arguments& out, const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  const bool fsdp = a.zero_stage >= 2;
  if (a.zero_stage == 1) out.flag("--use-distributed-optimizer");
  if (fsdp) {
    out.flag("--use-megatron-fsdp");
    out.flag("--use-distributed-optimizer");
    out.value("--data-parallel-sharding-strategy",
              a.zero_stage == 2 ? "optim_grads" : "optim_grads_params");
    if (a.pipeline > 1)
      refused.add("strategy.zero_stage", fmt::format("zero_stage {} in a pipeline", a.zero_stage),
                  "zero_stage: 1");
    if (a.tensor > 1 || a.context > 1)
      refused.add("strategy.zero_stage",
                  fmt::format("zero_stage {} beside tensor or context parallelism (their settings "
                              "of CUDA_DEVICE_MAX_CONNECTIONS exclude each other)",
                              a.zero_stage),
                  "zero_stage: 1");
  }
  if (a.zero_stage > 0 && l.job->optimizer == Optimizer::sgd_momentum)
    refused.add("optimizer", fmt::format("optimizer: sgd with zero_stage {}", a.zero_stage),
                "optimizer: adamw, or zero_stage: 0");
  // Megatron FSDP asserts it, and a plan's overlap is of zero_stage 0 and 1.
  const bool overlap = a.overlap || fsdp;
  if (overlap) out.flag("--overlap-grad-reduce");
  if (overlap && a.zero_stage > 0) out.flag("--overlap-param-gather");
  if (a.offload_optimizer) {
    out.flag("--optimizer-cpu-offload");
    out.flag("--use-precision-aware-optimizer");
    if (a.zero_stage != 1)
      refused.add("strategy.offload_optimizer",
                  fmt::format("an optimizer on the host with zero_stage {}", a.zero_stage),
                  "zero_stage: 1");
    if (l.job->optimizer == Optimizer::sgd_momentum)
      refused.add("strategy.offload_optimizer", "optimizer: sgd on the host", "optimizer: adamw");
  }
  out.value("--ckpt-format", fsdp ? "fsdp_dtensor" : "torch_dist");
  switch (a.recompute) {
    case Recompute::none:
      break;
    case Recompute::selective:
      out.value("--recompute-granularity", "selective");
      break;
    case Recompute::full:
      out.value("--recompute-granularity", "full");
      out.value("--recompute-method", "uniform");
      out.value("--recompute-num-layers", 1);
      break;
  }
}

void add_experts(Arguments& out, const LaunchLayout& l, const TransformerDimensions& d,
                 Refusals& refused) {
  if (d.experts == 0) return;
  out.value("--num-experts", d.experts);
  out.value("--moe-router-topk", d.experts_per_token);
  // Of one expert it takes no softmax after the choice: that would be 1.
  if (!d.normalized_experts || d.experts_per_token == 1) out.flag("--moe-router-pre-softmax");
  out.value("--moe-ffn-hidden-size", d.expert_feed_forward);
  if (d.dense_layers > 0)
    out.word("--moe-layer-freq",
             fmt::format("([0]*{}+[1]*{})", d.dense_layers, d.layers - d.dense_layers));
  if (d.shared_feed_forward > 0)
    out.value("--moe-shared-expert-intermediate-size", d.shared_feed_forward);
  out.value("--moe-token-dispatcher-type", l.layout.expert > 1 ? "alltoall" : "allgather");
  if (l.layout.tensor > 1 && !l.layout.sequence_parallel)
    refused.add("strategy.sequence_parallel",
                "experts beside tensor parallelism without sequence parallelism",
                "sequence_parallel: true");
  if (l.layout.expert > 1 && l.job->precision == Precision::fp16)
    refused.add("precision", "expert parallelism in fp16", "precision: bf16");
}

/// Whether attention and feed-forward of the blocks are among those of Megatron's GPTModel.
void refuse_blocks(const TransformerDimensions& d, Refusals& refused) {
  const auto refuse = [&](const char* what) {
    refused.add("model", what, "another model, or reckon export deepspeed");
  };
  if (d.alibi) refuse("attention with ALiBi");
  if (d.parallel_residual) refuse("attention beside the feed-forward part");
  if (d.shared_expert_gate) refuse("a gate of the shared expert");
  if (d.window > 0 && d.window < d.sequence_length) refuse("attention in a window");
  const bool known = d.activation == ActivationKind::gelu ||
                     (d.gated_feed_forward && d.activation == ActivationKind::silu);
  if (!known || (d.gated_feed_forward && d.activation == ActivationKind::gelu))
    refuse("an activation other than GELU and SwiGLU");
}

void add_model(Arguments& out, const LaunchLayout& l, Refusals& refused) {
  if (!l.model) return;
  const TransformerDimensions& d = *l.model;
  refuse_blocks(d, refused);
  out.value("--num-layers", d.layers);
  out.value("--hidden-size", d.hidden);
  out.value("--ffn-hidden-size", d.feed_forward);
  out.value("--num-attention-heads", d.heads);
  if (d.kv_heads != d.heads) {
    out.flag("--group-query-attention");
    out.value("--num-query-groups", d.kv_heads);
  }
  out.value("--kv-channels", d.head_width);
  out.value("--vocab-size", d.vocabulary);
  out.value("--seq-length", d.sequence_length);
  out.value("--max-position-embeddings", d.positions > 0 ? d.positions : d.sequence_length);
  out.value("--position-embedding-type", d.positions > 0 ? "learned_absolute" : "rope");
  if (d.positions == 0) {
    out.value("--rotary-base", std::int64_t(d.rotary_theta));
    if (d.rotary_width > 0)
      out.value("--rotary-percent", number_text(double(d.rotary_width) / double(d.head_width)));
  }
  out.value("--normalization", d.rms_norm ? "RMSNorm" : "LayerNorm");
  if (d.gated_feed_forward) out.flag("--swiglu");
  if (!d.bias) out.flag("--disable-bias-linear");
  if (d.qkv_bias) out.flag("--add-qkv-bias");
  if (d.qk_norm) out.flag("--qk-layernorm");
  if (!d.tied_output) out.flag("--untie-embeddings-and-output-weights");
  out.value("--attention-dropout", number_text(d.dropout));
  out.value("--hidden-dropout", number_text(d.dropout));
  add_experts(out, l, d, refused);
}

void add_precision(Arguments& out, const LaunchLayout& l, Refusals& refused) {
  const Precision p = l.job->precision;
  switch (p) {
    case Precision::fp32:
      return;
    case Precision::fp16:
      out.flag("--fp16");
      break;
    case Precision::bf16:
      out.flag("--bf16");
      break;
    case Precision::fp8:
    case Precision::mxfp8:
      out.flag("--bf16");
      out.value("--fp8-format", p == Precision::mxfp8 ? "e4m3" : "hybrid");
      if (p == Precision::mxfp8) out.value("--fp8-recipe", "mxfp8");
      break;
    case Precision::nvfp4:
      out.flag("--bf16");
      out.value("--fp4-format", "e2m1");
      break;
    case Precision::tf32:
      refused.add("precision", "precision tf32", "precision: bf16 or fp32");
      return;
  }
  if (l.job->fp32_gradients)
    out.flag("--accumulate-allreduce-grads-in-fp32");
  else if (p != Precision::fp16)
    out.flag("--grad-reduce-in-bf16");
}

void add_optimizer(Arguments& out, const LaunchLayout& l, Refusals& refused) {
  const PlannedOptimizer& o = l.job->optimizer_settings;
  if (o.warmup_steps >= l.job->steps)  // OptimizerParamScheduler
    refused.add(
        "optimizer",
        fmt::format("a warm-up of {} steps in a training of {}", o.warmup_steps, l.job->steps),
        fmt::format("warmup_steps: {} or less", l.job->steps - 1));
  const bool adam = l.job->optimizer == Optimizer::adamw;
  out.value("--optimizer", adam ? "adam" : "sgd");
  out.value("--lr", number_text(o.learning_rate));
  if (adam) {
    out.value("--adam-beta1", number_text(o.beta1));
    out.value("--adam-beta2", number_text(o.beta2));
    out.value("--adam-eps", number_text(o.epsilon));
  } else {
    out.value("--sgd-momentum", number_text(o.momentum));
  }
  out.value("--weight-decay", number_text(o.weight_decay));
  out.value("--clip-grad", number_text(o.clip_norm));
  out.value("--lr-decay-style",
            o.schedule == LearningRateSchedule::constant ? "constant" : "cosine");
  if (o.schedule == LearningRateSchedule::cosine)
    out.value("--min-lr", number_text(o.learning_rate * o.final_fraction));
  out.value("--lr-warmup-iters", o.warmup_steps);
  out.value("--train-iters", l.job->steps);
  out.value("--seed", l.seed);
}

/// Without --eval-iters 0 it evaluates 100 batches every 1,000 steps.
void add_progress(Arguments& out, const LaunchLayout& l) {
  out.value("--log-interval", kStepsPerPrint);
  const auto evaluation = evaluation_steps(*l.job);
  if (evaluation) out.value("--eval-interval", evaluation->every);
  out.value("--eval-iters", evaluation ? evaluation->batches : 0);
}

void add_checkpoints(Arguments& out, const LaunchLayout& l, Refusals& refused) {
  if (!l.save_every) return;
  out.value("--save", "\"$CHECKPOINTS\"");
  out.value("--load", "\"$CHECKPOINTS\"");
  out.value("--save-interval", *l.save_every);
  if (l.job->checkpoint.save_mode == SaveMode::async) out.flag("--async-save");
  if (l.job->checkpoint.save_mode == SaveMode::async && l.layout.zero_stage >= 2)
    refused.add("checkpoint.mode",
                fmt::format("asynchronous saves with zero_stage {} (its checkpointing.py has them "
                            "for torch_dist alone)",
                            l.layout.zero_stage),
                "mode: blocking, or zero_stage: 1");
  if (l.saves_on_notice()) out.flag("--exit-signal-handler");
}

}  // namespace

LauncherFile write(const LaunchLayout& l, Refusals& refused) {
  refuse_other_models(refused, l);
  refuse_steps_of_rate(refused, l);
  Arguments arguments;
  add_degrees(arguments, l, refused);
  add_sharding(arguments, l, refused);
  add_model(arguments, l, refused);
  add_precision(arguments, l, refused);
  add_optimizer(arguments, l, refused);
  add_progress(arguments, l);
  add_checkpoints(arguments, l, refused);
  LauncherFile out{.name = "megatron.sh",
                   .text = header(l, kMegatronVersion, kSource) +
                           "# bash: CHECKPOINTS=DIRECTORY; source megatron.sh; torchrun ... "
                           "pretrain_gpt.py \"${MEGATRON_ARGS[@]}\"\n" +
                           arguments.text(),
                   .program = "pretrain_gpt.py \"${MEGATRON_ARGS[@]}\"",
                   .sourced = true};
  // Megatron FSDP wants more than one; tensor and context parallelism want one.
  if (l.layout.zero_stage < 2) out.environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  out.left_to_program.emplace_back(
      "data and tokenizer: --data-path, --tokenizer-type (with --as: behind --program)");
  return out;
}

}  // namespace reckon::frameworks::megatron
