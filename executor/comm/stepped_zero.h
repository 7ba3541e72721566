#pragma once
#include <utility>
#include <vector>

#include "executor/comm/zero_steps.h"

namespace reckon {

/// A ZeroExchange whose steps are those of ZeroSteps: what is the same wherever parts are kept.
class SteppedZero : public ZeroExchange, protected ZeroParts {
 public:
  bool exchanges_every_pass() const override { return options_.stage >= 2; }
  void scaled_by(double scale, std::int64_t skipped) override { steps().scaled_by(scale, skipped); }
  void begin_backward() override { steps().begin_backward(); }
  ExchangeWaits take_waited() override { return steps().take_waited(); }
  void forget_passes() override { steps().forget_passes(); }
  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    return steps().finish_step(step, learning_rate);
  }
  std::vector<std::span<float>> optimizer_state() override { return {}; }
  bool keeps_parts() const override { return true; }

  void prefetch(std::size_t block) override { steps().prefetch(block); }
  void wait_for(std::size_t block) override { steps().wait_for(block); }

 protected:
  explicit SteppedZero(ZeroOptions options) : options_(std::move(options)) {}
  /// The last member of the class that keeps the parts: its thread uses all others.
  virtual ZeroSteps& steps() = 0;

  const ZeroOptions options_;
};

}  // namespace reckon
