#include "executor/comm/zero_steps.h"

#include <chrono>
#include <utility>

#include "sim/base/check.h"

namespace reckon {

ZeroSteps::ZeroSteps(ZeroParts& parts, const ZeroOptions& options, Communicator& ranks,
                     std::vector<std::size_t> trained)
    : parts_(parts), options_(options), ranks_(ranks) {
  RECKON_CHECK(options_.stage >= 1 && options_.stage <= 3);
  for (const std::size_t count : trained) blocks_.push_back({.trained = count});
}

void ZeroSteps::begin_backward() {
  if (options_.stage >= 2) waited_.gradients += queue_.wait_for_all();
}

bool ZeroSteps::gradients_ready(std::size_t block, std::size_t count) {
  Block& b = blocks_[block];
  b.ready += count;
  RECKON_CHECK(b.ready <= b.trained);
  if (b.ready < b.trained) return false;
  b.ready = 0;
  return true;
}

void ZeroSteps::all_ready(std::size_t block) {
  if (options_.stage == 1 && !options_.overlap) {
    waiting_.push_back(block);
    return;
  }
  const std::int64_t ticket = queue_.push([this, block] { parts_.reduce(block); });
  // Who keeps no whole gradients has no more than two blocks' of them.
  if (options_.stage >= 2) waited_.gradients += queue_.wait(std::exchange(reduction_, ticket));
}

void ZeroSteps::prefetch(std::size_t block) {
  blocks_[block].gather = queue_.push([this, block] { parts_.gather_whole(block); });
}

std::optional<double> ZeroSteps::clip() const {
  const auto of_ranks = [this] {
    double squares = parts_.own_squares();
    ranks_.all_reduce(std::span(&squares, 1));
    return squares;
  };
  return scaling_.scale_of_step(options_.clip_norm, of_ranks, options_.squares_of_all);
}

void ZeroSteps::forget_passes() {
  queue_.wait_for_all();
  queue_.take_busy();
  sent_ = {};
  waited_ = {};
}

ExchangeTimes ZeroSteps::finish_step(std::int64_t step, double learning_rate) {
  using Clock = std::chrono::steady_clock;
  ExchangeTimes times;
  times.next_step = step + 1;
  const auto backward_end = Clock::now();
  for (const std::size_t block : std::exchange(waiting_, {}))
    queue_.push([this, block] { parts_.reduce(block); });
  queue_.wait_for_all();
  const auto reduced = Clock::now();
  const std::optional<double> scale = clip();
  const Seconds norm = Clock::now() - reduced;
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    RECKON_CHECK(blocks_[k].ready == 0);  // every gradient was named
    if (blocks_[k].trained == 0) continue;
    const auto begin = Clock::now();
    if (scale) parts_.update(k, scaling_.updates_of(step), learning_rate, *scale);
    if (options_.stage >= 2) parts_.clear_gradients(k);
    const auto updated = Clock::now();
    times.apply += updated - begin;
    if (!scale || options_.stage >= 3) continue;
    parts_.gather_updated(k);
    times.gathering += Clock::now() - updated;
  }
  times.skipped = !scale;
  const Seconds behind = norm + times.gathering;
  times.communication = queue_.take_busy() + behind;
  times.exposed_communication = (reduced - backward_end) + behind;
  times.sent = std::exchange(sent_, {});
  return times;
}

}  // namespace reckon
