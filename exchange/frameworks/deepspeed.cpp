#include <fmt/format.h>

#include "exchange/frameworks/writers.h"

// The JSON file of `--deepspeed_config`. Keys and allowed values: deepspeedai/DeepSpeed v0.19.5
// (cf44300453eb0af79ed84ed8f1cb49d57478bd76), deepspeed/runtime/config.py, constants.py,
// zero/config.py, zero/offload_config.py, tensor_parallel/config.py, lr_schedules.py and
// precision_config.py; what goes together: engine.py there. The model, its blocks and what is
// computed again are the program's.
namespace reckon::frameworks::deepspeed {
namespace {

void refuse_layout(const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  if (a.pipeline > 1)
    refused.add(
        "strategy.pipeline",
        fmt::format("{} pipeline stages, which are the program's (PipelineModule)", a.pipeline),
        "pipeline: 1, or reckon export megatron");
  if (a.context > 1)
    refused.add("strategy.context", fmt::format("context parallelism of {}", a.context),
                "context: 1, or reckon export megatron");
  if (a.expert > 1)
    refused.add(
        "strategy.expert",
        fmt::format("expert parallelism of {}, which is the program's (deepspeed.moe)", a.expert),
        "expert: 1, or reckon export megatron");
  if (a.tensor > 1 && a.sequence_parallel)
    refused.add("strategy.sequence_parallel", "sequence parallelism", "sequence_parallel: false");
  if (a.tensor > 1 && a.zero_stage == 3)
    refused.add("strategy.zero_stage", "zero_stage 3 beside tensor parallelism",
                "zero_stage: 2 or less");
  const bool mixed = l.job->precision == Precision::bf16 || l.job->precision == Precision::fp16;
  if (a.zero_stage == 0 && mixed && l.job->fp32_gradients)
    refused.add("strategy.zero_stage",
                fmt::format("gradients in fp32 beside {} without ZeRO", to_text(l.job->precision)),
                "zero_stage: 1, or fp32_gradients: false");
  if (a.offload_optimizer && a.zero_stage == 0)
    refused.add("strategy.offload_optimizer", "an optimizer on the host without ZeRO",
                "zero_stage: 1 or more");
}

Json zero_of(const LaunchLayout& l) {
  const Layout& a = l.layout;
  Json zero = {{"stage", a.zero_stage}};
  if (a.zero_stage > 0) zero["overlap_comm"] = a.overlap;
  if (a.offload_optimizer) zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  return zero;
}

Json optimizer_of(const LaunchLayout& l) {
  const PlannedOptimizer& o = l.job->optimizer_settings;
  if (l.job->optimizer == Optimizer::sgd_momentum)  // of torch.optim
    return {
        {"type", "SGD"},
        {"params",
         {{"lr", o.learning_rate}, {"momentum", o.momentum}, {"weight_decay", o.weight_decay}}}};
  return {{"type", "AdamW"},
          {"params",
           {{"lr", o.learning_rate},
            {"betas", {o.beta1, o.beta2}},
            {"eps", o.epsilon},
            {"weight_decay", o.weight_decay}}}};
}

/// WarmupLR and WarmupCosineLR warm up for two steps at least.
void add_schedule(Json& file, const LaunchLayout& l, Refusals& refused) {
  const PlannedOptimizer& o = l.job->optimizer_settings;
  const bool constant = o.schedule == LearningRateSchedule::constant;
  if (constant && o.warmup_steps == 0) return;
  if (o.warmup_steps < 2) {
    refused.add("optimizer", fmt::format("a warm-up of {} steps", o.warmup_steps),
                "warmup_steps: 2 or more");
    return;
  }
  Json params;
  if (constant)
    params = {{"warmup_min_lr", 0.0}, {"warmup_max_lr", o.learning_rate}};
  else
    params = {{"total_num_steps", l.job->steps},
              {"warmup_min_ratio", 0.0},
              {"cos_min_ratio", o.final_fraction}};
  params["warmup_num_steps"] = o.warmup_steps;
  params["warmup_type"] = "linear";
  file["scheduler"] = {{"type", constant ? "WarmupLR" : "WarmupCosineLR"}, {"params", params}};
}

void add_precision(Json& file, const LaunchLayout& l, Refusals& refused) {
  const Precision p = l.job->precision;
  if (p != Precision::fp32 && p != Precision::bf16 && p != Precision::fp16) {
    refused.add("precision", fmt::format("precision {}", to_text(p)),
                "precision: bf16, fp16 or fp32");
    return;
  }
  if (p == Precision::fp32) return;
  file[std::string(to_text(p))] = {{"enabled", true}};
  file["data_types"] = {{"grad_accum_dtype", l.job->fp32_gradients ? "fp32" : to_text(p)}};
}

}  // namespace

LauncherFile write(const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  refuse_steps_of_rate(refused, l);
  refuse_layout(l, refused);
  Json file = {{"train_batch_size", l.job->global_batch},
               {"train_micro_batch_size_per_gpu", a.micro_batch},
               {"gradient_accumulation_steps", a.micro_batches},
               {"gradient_clipping", l.job->optimizer_settings.clip_norm},
               {"steps_per_print", kStepsPerPrint},  // by default it prints none
               {"zero_optimization", zero_of(l)}};
  if (a.tensor > 1) file["tensor_parallel"] = {{"autotp_size", a.tensor}};
  file["optimizer"] = optimizer_of(l);
  if (l.job->optimizer == Optimizer::sgd_momentum && a.zero_stage > 0)
    file["zero_allow_untested_optimizer"] = true;
  add_schedule(file, l, refused);
  add_precision(file, l, refused);
  LauncherFile out{.name = "deepspeed.json",
                   .text = file.dump(2) + '\n',
                   .program = "$TRAIN_PROGRAM --deepspeed --deepspeed_config \"$CONFIG\""};
  note_program(out, l);
  if (a.recompute != Recompute::none)
    out.left_to_program.push_back(fmt::format(
        "recomputation: {} (checkpoints of activations in the model)", to_text(a.recompute)));
  return out;
}

}  // namespace reckon::frameworks::deepspeed
