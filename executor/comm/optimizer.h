#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/plan.h"

// The optimizer as data (which one, with what constants) and as state. Workers of an all-reduce and
// parameter servers apply the same code, so both give the same bits.
namespace reckon {

struct OptimizerOptions {
  Optimizer kind = Optimizer::sgd_momentum;
  double momentum = 0.9;                              // sgd_momentum
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adamw
  double weight_decay = 0;
};

/// Optimizer state of `count` parameters.
class ParameterOptimizer {
 public:
  virtual ~ParameterOptimizer() = default;
  /// One step of the parameters [first, first + values.size()) of those it has state for; every
  /// range once a step. `step` counts from 0.
  virtual void apply(std::size_t first, std::span<float> values, std::span<const float> gradients,
                     std::int64_t step, double learning_rate) = 0;
  /// What a checkpoint keeps besides the parameters: `count` values a buffer.
  struct State {
    std::string name;  // "velocity"; "first_moment", "second_moment"
    std::span<float> values;
  };
  virtual std::vector<State> state() = 0;
};
std::unique_ptr<ParameterOptimizer> make_optimizer(const OptimizerOptions& options,
                                                   std::size_t count);

}  // namespace reckon
