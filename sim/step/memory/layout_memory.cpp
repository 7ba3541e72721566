#include "sim/step/memory/layout_memory.h"

#include <algorithm>

#include "sim/step/layer_shares.h"
#include "sim/step/offload.h"

namespace reckon {
namespace {

struct StateSums {
  double parameters = 0, trainable = 0, expert_parameters = 0, expert_trainable = 0;
};

/// Bytes of a kind of state of one rank: all of it, or its shard of each sum.
Bytes kept(double shared, double of_experts, const Layout& l, bool sharded, Bytes each) {
  const double ranks = l.replicas_of_state();
  const double expert_ranks = std::max(1.0, ranks / l.expert);
  return sharded ? (shared / ranks + of_experts / expert_ranks) * each
                 : (shared + of_experts) * each;
}

MemoryEstimate stage_memory(const Partition& partition, std::span<const BlockState> blocks,
                            const Layout& l, const ElementSizes& size, int stage) {
  StateSums sums;
  MemoryEstimate m;
  Bytes redone{}, all{};
  double largest_parameters = 0, largest_trainable = 0, working = 0;
  for (int part = 0; part < l.interleave; ++part) {
    const double passes = double(passes_in_flight(l, stage, part)) * l.micro_batch;
    const std::size_t at = std::size_t(part) * std::size_t(l.pipeline) + std::size_t(stage);
    for (const Run& run : partition.kinds[partition.parts[at]]) {
      const BlockState& b = blocks[run.what];
      const double times = run.times;
      // Tied weights are at hand on the first stage; the last one has a copy of its own.
      const double tied = stage > 0 ? b.tied : 0;
      sums.parameters += times * (b.parameters + tied);
      sums.trainable += times * (b.trainable + tied);
      sums.expert_parameters += times * b.expert_parameters;
      sums.expert_trainable += times * b.expert_trainable;
      m.activations += passes * times * b.saved;
      all += passes * times * b.all;
      redone = std::max(redone, b.redone * double(l.micro_batch));
      largest_parameters = std::max(largest_parameters, b.parameters + b.expert_parameters);
      largest_trainable = std::max(largest_trainable, b.trainable + b.expert_trainable);
      working = std::max(working, b.working_elements);
    }
  }
  m.parameters = kept(sums.parameters, sums.expert_parameters, l, l.zero_stage >= 3, size.weight);
  const bool leave = gradients_leave(l);
  if (!leave)
    m.gradients = kept(sums.trainable, sums.expert_trainable, l, l.zero_stage >= 2, size.gradient);
  if (!l.offload_optimizer)
    m.optimizer = kept(sums.trainable, sums.expert_trainable, l, l.zero_stage >= 1,
                       size.master + size.optimizer);
  m.activations = std::min(m.activations + redone, all);
  m.gathered = kept(sums.parameters, sums.expert_parameters, l, l.zero_stage >= 1, size.buffers);
  m.workspace = working * l.micro_batch * size.activation;
  const bool shared = l.replicas_of_state() > 1;
  if (shared && l.zero_stage >= 3) m.gathered += 2 * largest_parameters * size.gathered;
  if ((shared && l.zero_stage >= 2) || leave) m.gathered += largest_trainable * size.gradient;
  return m;
}

}  // namespace

std::vector<BlockState> block_states(const FoldedModel& model, const Layout& layout,
                                     const ElementSizes& size, double expert_imbalance) {
  const LayoutShares shares(layout, expert_imbalance);
  std::vector<LayerState> layers;
  layers.reserve(model.layers().size());
  for (const LayerClass& layer : model.layers()) layers.push_back(state_of(layer, shares));
  std::vector<BlockState> states;
  states.reserve(model.blocks().size());
  for (const BlockClass& block : model.blocks()) {
    BlockState b;
    Bytes all{}, selective{}, scores{};
    for (const Run& run : block.layers) {
      const LayerState& s = layers[run.what];
      const double times = run.times;
      const bool four_bit = model.layers()[run.what].count.four_bit;
      const double held = four_bit ? kFourBitWeight / size.weight : 1;  // in weights as others are
      (s.of_experts ? b.expert_parameters : b.parameters) += times * s.parameters * held;
      (s.of_experts ? b.expert_trainable : b.trainable) += times * s.trainable;
      b.tied += times * s.tied;
      if (!s.of_experts) b.largest_trainable = std::max(b.largest_trainable, s.trainable);
      b.working_elements = std::max(b.working_elements, s.working_elements);
      const Bytes elements = s.saved_elements * size.activation;
      const bool attention = model.layers()[run.what].count.work == WorkKind::attention;
      const Bytes kept = s.scores * size.score;
      all += times * (elements + s.saved_fixed + kept);
      scores = std::max(scores, kept);
      selective += times * (elements + (attention ? Bytes{} : s.saved_fixed));
    }
    const Bytes input = block.input_elements * shares.tokens * size.activation;
    b.all = all;
    switch (layout.recompute) {
      case Recompute::none:
        b.saved = all;
        break;
      case Recompute::selective:
        b.saved = selective;
        b.redone = scores;
        break;
      case Recompute::full:
        // A block that keeps less than its input is not worth computing again.
        b.saved = std::min(input, all);
        b.redone = input < all ? all : Bytes{};
        break;
    }
    states.push_back(b);
  }
  return states;
}

std::int64_t passes_in_flight(const Layout& l, int stage, int part) {
  if (l.schedule == PipelineSchedule::gpipe) return l.micro_batches;
  const std::int64_t p = l.pipeline;
  if (l.interleave == 1) return std::min(l.micro_batches, p - stage);
  const std::int64_t v = l.interleave;
  const std::int64_t under_way =
      std::min(l.micro_batches * v, 2 * (p - stage - 1) + (v - 1) * p + 1);
  // p passes of each part in turn; what is left over begins again with the first part.
  const std::int64_t round = p * v;
  const std::int64_t in_round = std::clamp(under_way - part * p, std::int64_t{0}, p);
  return in_round + std::clamp(under_way - round - part * p, std::int64_t{0}, p);
}

int communicators(const Layout& l) {
  return int(l.data > 1) + int(l.tensor > 1) + int(l.pipeline > 1) + int(l.context > 1) +
         int(l.expert > 1);
}

MemoryEstimate memory_of(const FoldedModel& model, const Layout& layout, const ElementSizes& size,
                         double expert_imbalance) {
  return memory_of(model, layout, size, block_states(model, layout, size, expert_imbalance));
}

MemoryEstimate memory_of(const FoldedModel& model, const Layout& layout, const ElementSizes& size,
                         std::span<const BlockState> blocks) {
  const Partition& partition = model.partition(layout.pipeline * layout.interleave);
  MemoryEstimate most;
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    const MemoryEstimate m = stage_memory(partition, blocks, layout, size, stage);
    if (m.required() > most.required()) most = m;
  }
  return most;
}

std::vector<MemoryEstimate> memory_of_stages(const FoldedModel& model, const Layout& layout,
                                             const ElementSizes& size, double expert_imbalance) {
  const Partition& partition = model.partition(layout.pipeline * layout.interleave);
  const auto blocks = block_states(model, layout, size, expert_imbalance);
  std::vector<MemoryEstimate> each;
  for (int stage = 0; stage < layout.pipeline; ++stage)
    each.push_back(stage_memory(partition, blocks, layout, size, stage));
  return each;
}

}  // namespace reckon
