#include "sim/accuracy/run/layout.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "sim/scenario/layout_rules.h"
#include "sim/step/step_model.h"

namespace reckon {
namespace {

constexpr int kMostTensor = 8;
constexpr int kLargestMicroBatch = 16;
/// From so long a sequence on, tokens are shared out too, over so many ranks at most.
constexpr std::int64_t kLongSequence = 8'192;
constexpr int kMostContext = 8;

std::vector<int> powers_of_two(std::int64_t most) {
  std::vector<int> out;
  for (std::int64_t d = 1; d <= most; d *= 2) out.push_back(static_cast<int>(d));
  return out;
}

/// Tries layouts of one model and keeps the fastest.
class Search {
 public:
  Search(const Plan& plan, const PlannedWorkload& job)
      : model_(job.model, step_setting(plan, job)),
        accelerators_(job.strategy.accelerators()),
        batch_(job.global_batch),
        all_is_trained_(job.model.trainable_parameters() == job.model.parameters()) {}

  std::optional<Layout> fastest(int per_node) {
    const LayoutLimits& limits = model_.limits();
    const std::int64_t contexts = limits.sequence_length >= kLongSequence ? kMostContext : 1;
    for (const int tensor : powers_of_two(std::min(per_node, kMostTensor)))
      for (const int context : powers_of_two(contexts))
        for (int pipeline = 1; pipeline <= limits.blocks; ++pipeline) {
          Layout l;
          l.tensor = tensor;
          l.context = context;
          l.pipeline = pipeline;
          l.sequence_parallel = tensor > 1;
          const std::int64_t replica = std::int64_t{tensor} * context * pipeline;
          if (accelerators_ % replica != 0) continue;
          l.data = static_cast<int>(accelerators_ / replica);
          if (batch_ % l.data != 0) continue;
          l.zero_stage = all_is_trained_ && l.replicas_of_state() > 1 ? 1 : 0;
          with_experts(l);
        }
    return best_;
  }

 private:
  void with_experts(Layout l) {
    with_schedules(l);
    for (const std::int64_t experts : model_.limits().experts)
      for (const int degree : powers_of_two(std::gcd(experts, std::int64_t{l.data}))) {
        if (degree == 1) continue;
        l.expert = degree;
        with_schedules(l);
      }
  }
  void with_schedules(Layout l) {
    for (int parts = 1; parts * l.pipeline <= model_.limits().blocks; ++parts) {
      if (parts > 1 && (l.pipeline == 1 || model_.limits().blocks % (parts * l.pipeline) != 0))
        continue;
      l.interleave = parts;
      l.schedule =
          parts > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_forward_one_backward;
      with_batches(l);
    }
  }
  void with_batches(Layout l) {
    const std::int64_t share = batch_ / l.data;
    for (const int micro : powers_of_two(std::min<std::int64_t>(share, kLargestMicroBatch))) {
      if (share % micro != 0) break;
      l.micro_batch = micro;
      l.micro_batches = share / micro;
      if (!broken_rules(model_.limits(), l, accelerators_, batch_).empty()) continue;
      for (const Recompute mode : {Recompute::none, Recompute::selective, Recompute::full}) {
        l.recompute = mode;
        if (!model_.memory(l).fits_at(kMoreLikelyThanNot)) continue;
        consider(l);
        break;
      }
    }
  }
  void consider(const Layout& l) {
    const Seconds step = model_.estimate(l).step;
    if (best_ && step >= best_step_) return;
    best_ = l;
    best_step_ = step;
  }

  const StepModel model_;
  const int accelerators_;
  const std::int64_t batch_;
  const bool all_is_trained_;
  std::optional<Layout> best_;
  Seconds best_step_{};
};

}  // namespace

bool hides_layout(const RunConfiguration& run) {
  const bool language = run.model == "gpt" || run.model == "moe" || run.model == "gpt_lora";
  return language && run.strategy == "model_parallel" && (run.tensor == 0 || run.pipeline == 0);
}

bool take_fastest_layout(const Plan& plan, PlannedWorkload& job) {
  const PlannedPool& pool = *plan.pool_with(Role::worker);
  const auto found = Search(plan, job).fastest(pool.accelerators_per_node);
  if (!found) return false;
  PlannedStrategy& s = job.strategy;
  s.layout.tensor = found->tensor;
  s.layout.pipeline = found->pipeline;
  s.layout.context = found->context;
  s.layout.expert = found->expert;
  s.layout.zero_stage = found->zero_stage;
  s.layout.sequence_parallel = found->sequence_parallel;
  s.layout.schedule = found->schedule;
  s.layout.interleave = found->interleave;
  s.layout.recompute = found->recompute;
  s.layout.micro_batch = found->micro_batch;
  return true;
}

}  // namespace reckon
