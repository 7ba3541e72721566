#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "kernels/optimizer/adamw.h"
#include "kernels/optimizer/sgd_momentum.h"

// An optimizer over one flat buffer of weights, or over a part of it (a parameter server's keys).
// The learning rate of a step comes from the schedule, not from the rule.
namespace reckon {

using OptimizerRule = std::variant<SgdMomentum, AdamW>;

/// Weights [first, first + count) of the whole flat buffer that are trained, in ascending order.
/// Norms and biases are not decayed [Radford 2019; nanoGPT, PyTorch's reference recipes].
struct TrainedRange {
  std::size_t first = 0, count = 0;
  bool decays = true;
  friend bool operator==(const TrainedRange&, const TrainedRange&) = default;
};
/// The parts of `ranges` inside [first, first + count), counted from `first`.
std::vector<TrainedRange> part_of(std::span<const TrainedRange> ranges, std::size_t first,
                                  std::size_t count);

class FlatOptimizer {
 public:
  /// For a buffer of `count` weights, of which `trained` are trained. State starts at zero.
  FlatOptimizer(OptimizerRule rule, std::size_t count, std::vector<TrainedRange> trained);

  /// One update of all that is trained; both spans have `count` elements. `step` counts updates
  /// from 0. Each gradient is multiplied by `gradient_scale` first (1 / ranks; clip_scale()).
  void update(std::int64_t step, double learning_rate, double gradient_scale,
              std::span<float> weights, std::span<const float> gradients);

  /// The same of weights [first, first + gradients.size()) alone: of the rows of a table that a
  /// step has gradients of. All others, with what the optimizer has of them, stay as they are, as
  /// with PyTorch's SparseAdam and TensorFlow's sparse updates: no momentum and no decay without a
  /// gradient. `weights` has `count` elements.
  void update_part(std::int64_t step, double learning_rate, double gradient_scale,
                   std::size_t first, std::span<float> weights, std::span<const float> gradients);

  /// What a checkpoint keeps: velocities; or first and second moments. (count) each.
  std::vector<std::span<float>> state();
  const OptimizerRule& rule() const { return rule_; }
  std::span<const TrainedRange> trained() const { return trained_; }

 private:
  OptimizerRule rule_;
  std::size_t count_;
  std::vector<TrainedRange> trained_;
  std::vector<float> first_, second_;  // velocities, none; or moments
};

/// Sum of squares in double, in the order of the elements.
double squared_norm(std::span<const float> values);
/// What gradients are multiplied by so that their norm is at most `most`: min(1, most / norm)
/// [Pascanu 2013, arXiv:1211.5063, algorithm 1]. most <= 0: no clipping.
double clip_scale(double squared_norm, double most);  // a factor, 0..1

}  // namespace reckon
