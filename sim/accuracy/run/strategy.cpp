#include "sim/accuracy/run/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/accuracy/run/layout.h"

namespace reckon {
namespace {

Recompute recompute_of(const RunConfiguration& run) {
  // MaxText's remat policy lies between selective and full. Nothing printed: none.
  if (run.recompute == "full") return Recompute::full;
  if (run.recompute == "selective" || (run.recompute == "unknown" && run.stack == "maxtext"))
    return Recompute::selective;
  return Recompute::none;
}

/// Megatron-LM, what is built around its core (Megatron Bridge, NeMo) and its fork with DeepSpeed.
bool on_megatron(const RunConfiguration& run) {
  return run.stack.starts_with("megatron") || run.stack.starts_with("nemo");
}

/// Not printed: Megatron's distributed optimizer, with which the recipes of Megatron Bridge and
/// NeMo and published runs of Megatron-LM run, or DeepSpeed's stage 1, as BigScience's scripts have
/// it (ZERO_STAGE=1; its bf16 optimizer shards by itself), where there are ranks to share the
/// state.
std::optional<int> zero_stage_of(const RunConfiguration& run, const StrategySpec& s) {
  if (run.zero_stage) return run.zero_stage;
  return on_megatron(run) && *s.data * *s.context > 1 ? std::optional(1) : std::nullopt;
}

/// Not printed: with tensor parallelism, but in the fork with DeepSpeed, which is older
/// [Korthikanti et al. 2022] and where it has it does so only when asked.
std::optional<bool> sequence_parallel_of(const RunConfiguration& run) {
  if (run.sequence_parallel || run.stack != "megatron-deepspeed") return run.sequence_parallel;
  return false;
}

}  // namespace

double micro_batch_of(const RunConfiguration& run) {
  if (run.micro_batch > 0) return run.micro_batch;
  if (run.batch_per_accelerator > 0) return run.batch_per_accelerator;
  return double(run.global_batch) / run.accelerators;
}

tl::expected<StrategySpec, std::string> strategy_of(const RunConfiguration& run,
                                                    const RunPlacement& at, bool tpu) {
  StrategySpec s;
  s.recompute = recompute_of(run);
  if (run.strategy == "single" || run.strategy == "all_reduce") {
    if (tpu) {
      s.kind = StrategyKind::tpu;
    } else if (run.accelerators == 1) {
      s.kind = StrategyKind::single;
    } else if (at.nodes == 1) {
      s.kind = StrategyKind::mirrored;
    } else {
      s.kind = StrategyKind::multi_worker_mirrored;
      // Where nodes hold different numbers, each process drives one.
      const bool even = at.nodes * at.per_node == run.accelerators;
      s.accelerators_per_worker = even ? at.per_node : 1;
      s.workers = even ? at.nodes : run.accelerators;
    }
    return s;
  }
  if (run.strategy == "parameter_server") {
    // A worker drives all of a node. Servers of one node's job are on that node.
    s.kind = StrategyKind::parameter_server;
    s.workers = at.nodes;
    s.accelerators_per_worker = at.per_node;
    s.parameter_servers = at.nodes > 1 ? run.parameter_servers : 0;
    return s;
  }
  if (run.strategy.starts_with("zero")) {
    s.kind = StrategyKind::sharded;
    s.zero_stage = run.strategy.back() - '0';
    return s;
  }
  if (hides_layout(run)) {
    // One copy on each: plan_of_run() finds the layout when the plan is made.
    s.kind = StrategyKind::model_parallel;
    s.tensor = s.pipeline = s.context = s.expert = s.micro_batch = 1;
    s.data = run.accelerators;
    return s;
  }
  if (run.strategy == "model_parallel") {
    if (run.tensor == 0 || run.pipeline == 0)
      return tl::unexpected<std::string>("the layout is not printed");
    s.kind = StrategyKind::model_parallel;
    s.tensor = run.tensor;
    s.pipeline = run.pipeline;
    s.context = std::max(1, run.context);
    s.expert = std::max(1, run.expert);
    s.data = run.data > 0 ? run.data : run.accelerators / (*s.tensor * *s.pipeline * *s.context);
    s.micro_batch = std::max(1, static_cast<int>(micro_batch_of(run)));
    s.sequence_parallel = sequence_parallel_of(run);
    s.overlap = run.overlap;
    s.zero_stage = zero_stage_of(run, s);
    if (run.interleave > 1) {
      s.schedule = PipelineSchedule::interleaved;
      s.interleave = run.interleave;
    }
    return s;
  }
  if (run.strategy == "unknown") return tl::unexpected<std::string>("the layout is not printed");
  static const std::vector<std::string> kKnown{"single", "all_reduce", "parameter_server", "zero1",
                                               "zero2",  "zero3",      "model_parallel"};
  return tl::unexpected<std::string>(
      fmt::format("unknown strategy '{}'{}", run.strategy, did_you_mean(run.strategy, kKnown)));
}

}  // namespace reckon
