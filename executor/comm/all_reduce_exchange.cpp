#include "executor/comm/all_reduce_exchange.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "executor/comm/first_values.h"
#include "executor/comm/gradient_scaling.h"
#include "executor/comm/prepared_update.h"
#include "sim/base/check.h"
#include "sim/step/buckets.h"

namespace reckon {

namespace {
using Clock = std::chrono::steady_clock;

/// Ranges of the flat buffer that travel together, in the order in which they became ready.
/// Neighbours are joined; a bucket of one range is reduced in place.
using GradientBucket = std::vector<ParameterRange>;

void append_range(GradientBucket& bucket, ParameterRange range) {
  if (range.count == 0) return;
  if (!bucket.empty() && range.first + range.count == bucket.back().first)  // the backward order
    bucket.back() = {range.first, range.count + bucket.back().count};
  else
    bucket.push_back(range);
}

class AllReduceExchange final : public GradientExchange {
 public:
  AllReduceExchange(Communicator& communicator, AllReduceOptions options);
  ~AllReduceExchange() override;
  AllReduceExchange(const AllReduceExchange&) = delete;
  AllReduceExchange& operator=(const AllReduceExchange&) = delete;

  void start(ParameterView parameters) override;
  void gradient_ready(ParameterRange range) override;
  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override;
  std::vector<std::span<float>> optimizer_state() override { return optimizer_->state(); }
  void restore_optimizer_state() override {}  // it is written in place
  void scaled_by(double scale, std::int64_t skipped) override { scaling_ = {scale, skipped}; }
  std::optional<ExchangeTimes> make_up_update() override {
    return prepared_.make_up_after_loss([this](const PreparedUpdate::Step& s) { update(s); });
  }

 private:
  void close_bucket();
  bool is_of_experts(ParameterRange range) const;
  void serve();
  void reduce(const GradientBucket& bucket);
  void wait_for_reductions();
  bool apply(std::int64_t step, double learning_rate);
  void update(const PreparedUpdate::Step& step);

  Communicator& communicator_;
  const AllReduceOptions options_;
  GradientScaling scaling_;
  PreparedUpdate prepared_;
  ParameterView parameters_;
  std::optional<FlatOptimizer> optimizer_;
  BucketRule rule_;
  GradientBucket open_;
  std::vector<GradientBucket> held_;  // without overlap: until the end of the backward pass
  std::size_t ready_ = 0;             // parameters, in this step
  std::vector<float> gathered_;       // a bucket of several ranges

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<GradientBucket> queue_;  // [0] is being reduced
  bool stop_ = false;
  std::exception_ptr failed_;
  Seconds busy_{};
  Bytes sent_{};
  std::jthread thread_;
};

AllReduceExchange::AllReduceExchange(Communicator& communicator, AllReduceOptions options)
    : communicator_(communicator), options_(std::move(options)) {
  if (communicator_.size() > 1) thread_ = std::jthread([this] { serve(); });
}

AllReduceExchange::~AllReduceExchange() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

void AllReduceExchange::start(ParameterView parameters) {
  RECKON_CHECK(parameters.values.size() == parameters.gradients.size());
  parameters_ = parameters;
  optimizer_.emplace(options_.optimizer, parameters.values.size(), options_.trained);
  share_first_values(parameters.values, communicator_, options_.of_experts,
                     options_.expert_replicas);
}

bool AllReduceExchange::is_of_experts(ParameterRange range) const {
  return std::ranges::any_of(options_.of_experts, [&](const ParameterRange& experts) {
    return range.first >= experts.first && range.first < experts.first + experts.count;
  });
}

void AllReduceExchange::gradient_ready(ParameterRange range) {
  RECKON_CHECK(range.first + range.count <= parameters_.gradients.size());
  ready_ += range.count;
  if (communicator_.size() == 1) return;
  if (!open_.empty() && is_of_experts(open_.front()) != is_of_experts(range)) close_bucket();
  append_range(open_, range);
  if (rule_.add(Bytes{double(range.count * sizeof(float))})) close_bucket();
}

void AllReduceExchange::close_bucket() {
  if (open_.empty()) return;
  if (options_.overlap) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(open_));
    changed_.notify_all();
  } else {
    held_.push_back(std::move(open_));
  }
  open_.clear();
}

/// The communication thread: bucket after bucket, in the order in which they were closed, which is
/// the same on all ranks.
void AllReduceExchange::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || (!queue_.empty() && !failed_); });
    if (stop_) return;
    lock.unlock();
    const auto begin = Clock::now();
    std::exception_ptr failed;
    try {
      reduce(queue_.front());  // deque: pushing to its end does not move its front
    } catch (const std::exception&) {
      failed = std::current_exception();
    }
    lock.lock();
    busy_ += Clock::now() - begin;
    failed_ = failed;
    queue_.pop_front();
    changed_.notify_all();
  }
}

void AllReduceExchange::reduce(const GradientBucket& bucket) {
  const std::span<float> gradients = parameters_.gradients;
  Communicator& replicas =
      is_of_experts(bucket.front()) ? *options_.expert_replicas : communicator_;
  std::size_t count = 0;
  for (const ParameterRange& range : bucket) count += range.count;
  if (bucket.size() == 1) {
    replicas.all_reduce(gradients.subspan(bucket.front().first, count));
  } else {
    gathered_.resize(count);
    auto to = gathered_.begin();
    for (const ParameterRange& range : bucket)
      to = std::ranges::copy(gradients.subspan(range.first, range.count), to).out;
    replicas.all_reduce(std::span(gathered_));
    auto from = gathered_.cbegin();
    for (const ParameterRange& range : bucket) {
      std::copy_n(from, range.count, gradients.begin() + std::ptrdiff_t(range.first));
      from += std::ptrdiff_t(range.count);
    }
  }
  const double ranks = replicas.size();
  sent_ += Bytes{double(count * sizeof(float)) * 2 * (ranks - 1) / ranks};
}

void AllReduceExchange::wait_for_reductions() {
  std::unique_lock lock(mutex_);
  for (GradientBucket& bucket : held_) queue_.push_back(std::move(bucket));
  held_.clear();
  changed_.notify_all();
  changed_.wait(lock, [&] { return failed_ || queue_.empty(); });
  if (failed_) std::rethrow_exception(failed_);
}

/// False: nothing was updated.
bool AllReduceExchange::apply(std::int64_t step, double learning_rate) {
  const auto own_squares = [this] {
    double squares = 0;
    for (const TrainedRange& range : options_.counted.value_or(options_.trained))
      squares += squared_norm(parameters_.gradients.subspan(range.first, range.count));
    return squares;
  };
  const std::optional<double> scale =
      scaling_.scale_of_step(options_.clip_norm, own_squares, options_.squares_of_all);
  return prepared_.make({.step = step, .learning_rate = learning_rate, .gradient_scale = scale},
                        options_.before_update,
                        [this](const PreparedUpdate::Step& s) { update(s); });
}

void AllReduceExchange::update(const PreparedUpdate::Step& step) {
  optimizer_->update(scaling_.updates_of(step.step), step.learning_rate, *step.gradient_scale,
                     parameters_.values, parameters_.gradients);
}

ExchangeTimes AllReduceExchange::finish_step(std::int64_t step, double learning_rate) {
  std::size_t trained = 0;
  for (const TrainedRange& range : options_.trained) trained += range.count;
  RECKON_CHECK(ready_ >= trained);  // every gradient was named
  ready_ = 0;
  ExchangeTimes times;
  times.next_step = step + 1;
  const auto backward_end = Clock::now();
  if (communicator_.size() > 1) {
    close_bucket();
    rule_ = {};
    wait_for_reductions();
    const std::lock_guard lock(mutex_);
    times.communication = std::exchange(busy_, {});
    times.sent = std::exchange(sent_, {});
  }
  const auto reduced = Clock::now();
  times.exposed_communication = reduced - backward_end;
  times.skipped = !apply(step, learning_rate);
  times.apply = Clock::now() - reduced - prepared_.agreeing();
  times.communication += prepared_.agreeing();
  times.exposed_communication += prepared_.agreeing();
  return times;
}
}  // namespace

std::unique_ptr<GradientExchange> make_all_reduce_exchange(Communicator& communicator,
                                                           AllReduceOptions options) {
  return std::make_unique<AllReduceExchange>(communicator, std::move(options));
}

}  // namespace reckon
