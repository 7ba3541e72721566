#include "kernels/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {

std::vector<TrainedRange> part_of(std::span<const TrainedRange> ranges, std::size_t first,
                                  std::size_t count) {
  std::vector<TrainedRange> part;
  for (const TrainedRange& range : ranges) {
    const std::size_t begin = std::max(range.first, first);
    const std::size_t end = std::min(range.first + range.count, first + count);
    if (begin < end)
      part.push_back({.first = begin - first, .count = end - begin, .decays = range.decays});
  }
  return part;
}

FlatOptimizer::FlatOptimizer(OptimizerRule rule, std::size_t count,
                             std::vector<TrainedRange> trained)
    : rule_(rule), count_(count), trained_(std::move(trained)), first_(count) {
  if (std::holds_alternative<AdamW>(rule_)) second_.resize(count);
  std::size_t end = 0;
  for (const TrainedRange& range : trained_) {
    RECKON_CHECK(range.first >= end);
    end = range.first + range.count;
  }
  RECKON_CHECK(end <= count);
}

void FlatOptimizer::update(std::int64_t step, double learning_rate, double gradient_scale,
                           std::span<float> weights, std::span<const float> gradients) {
  RECKON_CHECK(gradients.size() == count_);
  update_part(step, learning_rate, gradient_scale, 0, weights, gradients);
}

void FlatOptimizer::update_part(std::int64_t step, double learning_rate, double gradient_scale,
                                std::size_t part, std::span<float> weights,
                                std::span<const float> gradients) {
  RECKON_CHECK(weights.size() == count_);
  RECKON_CHECK(part + gradients.size() <= count_);
  const std::size_t part_end = part + gradients.size();
  const auto ends_before = [&](const TrainedRange& r) { return r.first + r.count <= part; };
  for (auto it = std::partition_point(trained_.begin(), trained_.end(), ends_before);
       it != trained_.end() && it->first < part_end; ++it) {
    const std::size_t begin = std::max(it->first, part);
    const std::size_t end = std::min(it->first + it->count, part_end);
    if (begin >= end) continue;
    const TrainedRange range{.first = begin, .count = end - begin, .decays = it->decays};
    const auto w = weights.subspan(range.first, range.count);
    const auto g = gradients.subspan(range.first - part, range.count);
    const auto first = std::span(first_).subspan(range.first, range.count);
    const auto prepare = [&](auto rule) {
      rule.learning_rate = static_cast<float>(learning_rate);
      rule.gradient_scale = static_cast<float>(gradient_scale);
      if (!range.decays) rule.weight_decay = 0;
      return rule;
    };
    if (const SgdMomentum* sgd = std::get_if<SgdMomentum>(&rule_)) {
      sgd_momentum_reference(prepare(*sgd), w, first, g);
    } else {
      const auto second = std::span(second_).subspan(range.first, range.count);
      adamw_reference(prepare(std::get<AdamW>(rule_)), step, w, first, second, g);
    }
  }
}

std::vector<std::span<float>> FlatOptimizer::state() {
  if (second_.empty()) return {first_};
  return {first_, second_};
}

double squared_norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return sum;
}

double clip_scale(double squared_norm, double most) {
  if (most <= 0) return 1;
  const double norm = std::sqrt(squared_norm);
  return norm > most ? most / norm : 1;
}

}  // namespace reckon
