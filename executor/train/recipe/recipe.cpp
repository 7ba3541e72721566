#include "executor/train/recipe/recipe.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/model/lookup_tables.h"

namespace reckon {

bool pulls_rows(const PlannedWorkload& job) {
  return job.strategy.servers && job.strategy.servers->sparse_embeddings &&
         !lookup_tables(job.model).empty();
}

int ranks_of_worker(const PlannedStrategy& strategy) {
  return std::max(1, strategy.accelerators_per_worker);
}

int computing_ranks(const PlannedStrategy& strategy) {
  return strategy.workers * ranks_of_worker(strategy);
}

OptimizerRule optimizer_rule(const PlannedWorkload& job) {
  const PlannedOptimizer& o = job.optimizer_settings;
  const auto f = [](double x) { return static_cast<float>(x); };
  if (job.optimizer == Optimizer::adamw)
    return AdamW{.beta1 = f(o.beta1),
                 .beta2 = f(o.beta2),
                 .epsilon = f(o.epsilon),
                 .weight_decay = f(o.weight_decay)};
  return SgdMomentum{.momentum = f(o.momentum), .weight_decay = f(o.weight_decay)};
}

double learning_rate(const PlannedOptimizer& o, std::int64_t step, std::int64_t steps) {
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  if (step < o.warmup_steps) return o.learning_rate * real(step + 1) / real(o.warmup_steps);
  switch (o.schedule) {
    case LearningRateSchedule::constant:
      break;
    case LearningRateSchedule::step:
      return o.learning_rate * std::pow(o.decay_factor, real(step / o.decay_every));
    case LearningRateSchedule::cosine: {
      const double length = real(std::max<std::int64_t>(1, steps - 1 - o.warmup_steps));
      const double done = std::min(1.0, real(step - o.warmup_steps) / length);
      const double wave = (1 + std::cos(std::numbers::pi * done)) / 2;
      return o.learning_rate * (o.final_fraction + (1 - o.final_fraction) * wave);
    }
  }
  return o.learning_rate;
}

std::vector<TrainedRange> trained_ranges(const ParameterLayout& layout) {
  std::vector<TrainedRange> ranges;
  for (const ParameterSlot& slot : layout.slots) {
    if (!slot.trained) continue;
    const bool decays = slot.shape.size() > 1 && !slot.name.ends_with(".bias");
    TrainedRange* last = ranges.empty() ? nullptr : &ranges.back();
    if (last != nullptr && last->decays == decays && last->first + last->count == slot.first)
      last->count += slot.count;
    else
      ranges.push_back({.first = slot.first, .count = slot.count, .decays = decays});
  }
  return ranges;
}

std::vector<TrainedRange> counted_ranges(const ParameterLayout& layout) {
  std::vector<TrainedRange> ranges;
  for (const ParameterSlot& slot : layout.slots) {
    if (!slot.trained) continue;
    if (slot.global.empty()) ranges.push_back({.first = slot.first, .count = slot.count});
    for (const SlotPart& part : slot.parts)
      if (part.counts)
        ranges.push_back(
            {.first = part.first, .count = static_cast<std::size_t>(elements(part.box.length))});
  }
  return ranges;
}

}  // namespace reckon
