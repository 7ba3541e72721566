#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/base/quantity.h"

// What a strategy does between a rank's backward pass and its next forward pass. The training loop
// knows no other difference between strategies.
namespace reckon {

/// The state of all trainable parameters of one rank, flat: one buffer each, in the order of the
/// graph's layers. A layer's parameters are the range [first, first + count) of them.
struct ParameterView {
  std::span<float> values;
  std::span<float> gradients;
};
struct ParameterRange {
  std::size_t first = 0, count = 0;
};

/// Wall time of one step's exchange on this rank, in the simulator's words.
struct ExchangeTimes {
  Seconds communication{};                  // all of it, hidden or not
  Seconds exposed_communication{};          // after the backward pass had ended
  Seconds push{}, pull{}, wait{}, apply{};  // parameter server: by phase; else 0
  Bytes sent{};                             // by this rank, payload
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;
  /// Before the first step: every rank gets the same values (rank 0's, or the servers').
  virtual void start(ParameterView parameters) = 0;
  /// The gradients of `range` are final; called in the backward pass, last layer first, from the
  /// thread that computes. May begin to send; returns at once.
  virtual void gradient_ready(ParameterRange range) = 0;
  /// After the backward pass. On return `values` are those of the next step. `step` counts
  /// optimizer steps from 0; `learning_rate` is this step's.
  virtual ExchangeTimes finish_step(std::int64_t step, double learning_rate) = 0;
};

}  // namespace reckon
