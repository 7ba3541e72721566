#include <fmt/format.h>

#include "exchange/frameworks/writers.h"
#include "exchange/yaml_text.h"

// The YAML file of `accelerate launch --config_file`. Keys and allowed values:
// huggingface/accelerate v1.14.0 (beb0672aa8444ea7647aee056f624effe5996346),
// src/accelerate/commands/config/config_args.py (ClusterConfig), commands/launch.py (fsdp_*,
// parallelism_config_*), parallelism_config.py. Model, optimizer and their numbers are the
// program's.
namespace reckon::frameworks::accelerate {
namespace {

constexpr const char* kSource =
    "huggingface/accelerate v1.14.0, commands/config/config_args.py and commands/launch.py";

void refuse_layout(const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  if (a.pipeline > 1)
    refused.add("strategy.pipeline", fmt::format("{} pipeline stages in training", a.pipeline),
                "pipeline: 1, or reckon export torchtitan");
  if (a.expert > 1)
    refused.add("strategy.expert", fmt::format("expert parallelism of {}", a.expert),
                "expert: 1, or reckon export megatron");
  if (a.zero_stage == 1)
    refused.add("strategy.zero_stage", "zero_stage 1 (FSDP shards gradients, too)",
                "zero_stage: 2 or 3, or reckon export deepspeed");
  if (a.zero_stage == 0 && (a.tensor > 1 || a.context > 1))
    refused.add("strategy.zero_stage", "tensor or context parallelism without ZeRO",
                "zero_stage: 2 or 3");
  if (a.tensor > 1 && a.sequence_parallel)
    refused.add("strategy.sequence_parallel",
                "sequence parallelism of tensor-parallel ranks (a model's own tp_plan says)",
                "sequence_parallel: false");
  if (a.recompute == Recompute::selective)
    refused.add("strategy.recompute", "recompute: selective", "recompute: none or full");
  if (a.offload_optimizer)
    refused.add("strategy.offload_optimizer",
                "an optimizer on the host with parameters on the accelerator",
                "offload_optimizer: false, or reckon export deepspeed");
  if (!a.overlap)
    refused.add("strategy.overlap", "transfers that wait for arithmetic", "overlap: true");
}

std::string mixed_precision(const LaunchLayout& l, Refusals& refused) {
  switch (l.job->precision) {
    case Precision::fp32:
      return "no";
    case Precision::fp16:
    case Precision::bf16:
    case Precision::fp8:
      return std::string(to_text(l.job->precision));
    case Precision::tf32:
    case Precision::mxfp8:
    case Precision::nvfp4:
      break;
  }
  refused.add("precision", fmt::format("precision {}", to_text(l.job->precision)),
              "precision: bf16, fp16, fp8 or fp32");
  return "";
}

Json fsdp_of(const Layout& a) {
  return {{"fsdp_version", 2},
          {"fsdp_reshard_after_forward", a.zero_stage == 3},
          {"fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
          {"fsdp_state_dict_type", "SHARDED_STATE_DICT"},
          {"fsdp_offload_params", false},
          {"fsdp_cpu_ram_efficient_loading", false},
          {"fsdp_activation_checkpointing", a.recompute == Recompute::full}};
}

}  // namespace

LauncherFile write(const LaunchLayout& l, Refusals& refused) {
  const Layout& a = l.layout;
  refuse_layout(l, refused);
  const bool fsdp = a.zero_stage >= 2;
  Json file = {{"compute_environment", "LOCAL_MACHINE"},
               {"distributed_type", fsdp                ? "FSDP"
                                    : l.processes() > 1 ? "MULTI_GPU"
                                                        : "NO"},
               {"mixed_precision", mixed_precision(l, refused)},
               {"num_machines", l.nodes},
               {"num_processes", l.processes()},
               {"machine_rank", 0},
               {"main_training_function", "main"},
               {"rdzv_backend", "static"},
               {"same_network", true},
               {"use_cpu", false}};
  if (fsdp) file["fsdp_config"] = fsdp_of(a);
  if (fsdp && (a.tensor > 1 || a.context > 1))
    file["parallelism_config"] = {{"parallelism_config_dp_replicate_size", 1},
                                  {"parallelism_config_dp_shard_size", a.data},
                                  {"parallelism_config_tp_size", a.tensor},
                                  {"parallelism_config_cp_size", a.context}};
  // A ring of keys and values; by default they are gathered.
  if (fsdp && a.context > 1)
    file["parallelism_config"]["parallelism_config_cp_comm_strategy"] = "alltoall";
  LauncherFile out{.name = "accelerate.yaml",
                   .text = header(l, kAccelerateVersion, kSource) + yaml_text(file),
                   .launcher = Launcher::accelerate,
                   .program = "$TRAIN_PROGRAM"};
  // What Accelerator() takes where the program gives no number of its own.
  out.environment.emplace_back("ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
                               std::to_string(a.micro_batches));
  note_program(out, l);
  const PlannedOptimizer& o = l.job->optimizer_settings;
  out.left_to_program.push_back(
      fmt::format("{} samples in a batch of one process, {} batches accumulated", a.micro_batch,
                  a.micro_batches));
  out.left_to_program.push_back(fmt::format("optimizer {}: learning rate {}, weight decay {}",
                                            to_text(l.job->optimizer), o.learning_rate,
                                            o.weight_decay));
  if (!fsdp && a.recompute == Recompute::full)
    out.left_to_program.emplace_back("recomputation: full (checkpoints of activations)");
  return out;
}

}  // namespace reckon::frameworks::accelerate
