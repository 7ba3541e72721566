#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "executor/comm/gradient_exchange.h"

namespace reckon {

/// The update of a step from all sums' being there to its being made. In between the ranks agree
/// where they hold different parts of the network: a rank that updates has heard of all others that
/// they have their sums, so whoever lost a peer while it agreed can still make the same update.
class PreparedUpdate {
 public:
  struct Step {
    std::int64_t step = 0;
    double learning_rate = 0;
    std::optional<double> gradient_scale;  // nullopt: nothing is updated (scaled_by())
  };

  /// `agree`: AllReduceOptions::before_update, what it throws leaves the update prepared. False:
  /// nothing was updated.
  template <class Update>
  bool make(const Step& step, const std::function<void()>& agree, Update update) {
    step_ = step;
    const auto begin = std::chrono::steady_clock::now();
    if (agree) agree();
    agreeing_ = std::chrono::steady_clock::now() - begin;
    return make_up(update);
  }
  /// How long it took the ranks to agree, in the last make(): waiting for others, not work.
  Seconds agreeing() const { return agreeing_; }
  /// GradientExchange::make_up_update().
  template <class Update>
  std::optional<ExchangeTimes> make_up_after_loss(Update update) {
    if (!step_) return std::nullopt;
    ExchangeTimes times;
    times.next_step = step_->step + 1;
    times.skipped = !make_up(update);
    return times;
  }

 private:
  template <class Update>
  bool make_up(Update update) {
    const Step step = *std::exchange(step_, {});
    if (step.gradient_scale) update(step);  // what throws here leaves half of it
    return step.gradient_scale.has_value();
  }

  std::optional<Step> step_;
  Seconds agreeing_{};
};

}  // namespace reckon
