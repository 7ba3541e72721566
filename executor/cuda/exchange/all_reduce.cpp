#include "executor/cuda/exchange/all_reduce.h"

#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/gradient_scaling.h"
#include "executor/cuda/exchange/optimizer.h"
#include "executor/cuda/memory/parameters.h"
#include "executor/train/recipe/recipe.h"
#include "sim/base/check.h"
#include "sim/step/buckets.h"

namespace reckon::cuda {
namespace {

using Clock = std::chrono::steady_clock;

class DeviceExchange final : public GradientExchange {
 public:
  DeviceExchange(DeviceReducer* reducer, AllReduceOptions options, const ParameterLayout& layout,
                 cudaStream_t stream)
      : reducer_(reducer),
        options_(std::move(options)),
        layout_(layout),
        padded_(device_layout(layout)),
        trained_(trained_ranges(padded_)),
        counted_(options_.counted ? counted_ranges(padded_) : trained_),
        stream_(stream) {}

  void start(ParameterView parameters) override {
    RECKON_CHECK(parameters.values.size() == parameters.gradients.size());
    parameters_ = parameters;
    RECKON_CHECK(parameters.values.size() == padded_.count);
    const auto count = static_cast<std::int64_t>(padded_.count);
    first_ = DeviceBuffer<float>(count);
    if (std::holds_alternative<AdamW>(options_.optimizer)) second_ = DeviceBuffer<float>(count);
    squares_ = DeviceBuffer<double>(gpu::kNormScratch + 1);
    if (ranks() > 1) reducer_->broadcast_values(parameters.values);
  }

  void gradient_ready(ParameterRange range) override {
    RECKON_CHECK(range.first + range.count <= parameters_.gradients.size());
    if (ranks() == 1) return;
    open_.push_back(parameters_.gradients.subspan(range.first, range.count));
    bytes_ += Bytes{static_cast<double>(range.count * sizeof(float))};
    const bool full = rule_.add(Bytes{static_cast<double>(range.count * sizeof(float))});
    if (full && options_.overlap) send_open();
  }

  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    ExchangeTimes times;
    times.next_step = step + 1;
    if (ranks() > 1) {
      check(cudaStreamSynchronize(stream_), "backward pass");
      const auto backward_end = Clock::now();
      send_open();
      rule_ = {};
      reducer_->join(stream_);
      check(cudaStreamSynchronize(stream_), "sum of gradients");
      times.exposed_communication = times.communication = Clock::now() - backward_end;
      times.sent = std::exchange(bytes_, {}) * (2.0 * (ranks() - 1) / ranks());
    }
    const auto begin = Clock::now();
    times.skipped = !apply(step, learning_rate);
    check(cudaStreamSynchronize(stream_), "optimizer");
    times.apply = Clock::now() - begin;
    return times;
  }

  void scaled_by(double scale, std::int64_t skipped) override { scaling_ = {scale, skipped}; }
  std::vector<std::span<float>> optimizer_state() override {
    std::vector<std::span<float>> state;
    here_.assign(moments().size(), std::vector<float>(layout_.count));
    for_slots(
        [](float* here, float* there, std::size_t bytes) { copy_to_host(here, there, bytes); });
    for (std::vector<float>& values : here_) state.emplace_back(values);
    return state;
  }
  void restore_optimizer_state() override {
    RECKON_CHECK(here_.size() == moments().size());
    for_slots(
        [](float* here, float* there, std::size_t bytes) { copy_to_device(there, here, bytes); });
  }

 private:
  int ranks() const { return reducer_ == nullptr ? 1 : reducer_->size(); }
  std::vector<DeviceBuffer<float>*> moments() {
    if (second_.size() == 0) return {&first_};
    return {&first_, &second_};
  }
  /// copy(on the host, on the device, bytes) for each slot of each part of the state.
  template <class Copy>
  void for_slots(Copy copy) {
    for (std::size_t k = 0; k < here_.size(); ++k)
      for (std::size_t s = 0; s < layout_.slots.size(); ++s)
        copy(here_[k].data() + layout_.slots[s].first,
             moments()[k]->data() + padded_.slots[s].first, layout_.slots[s].count * sizeof(float));
  }
  void send_open() {
    if (open_.empty()) return;
    reducer_->queue_sums(open_, stream_);
    open_.clear();
  }

  /// nullopt: a gradient is not finite, and nothing is to be updated.
  std::optional<double> scale_of_gradients() {
    if (options_.clip_norm <= 0 && !scaling_.on()) return 1;
    double squares = 0;
    for (const TrainedRange& range : counted_)
      squares += squared_norm_on_device(parameters_.gradients.data() + range.first, range.count,
                                        squares_, stream_);
    if (options_.squares_of_all) squares = options_.squares_of_all(squares);
    if (scaling_.overflowed(squares)) return std::nullopt;
    return scaling_.gradient_scale(squares, options_.clip_norm);
  }

  /// False: nothing was updated.
  bool apply(std::int64_t step, double learning_rate) {
    const std::optional<double> scale = scale_of_gradients();
    if (!scale) return false;
    for (const TrainedRange& range : trained_)
      update_on_device(options_.optimizer,
                       {.values = parameters_.values.data() + range.first,
                        .gradients = parameters_.gradients.data() + range.first,
                        .first = first_.data() + range.first,
                        .second = second_.size() > 0 ? second_.data() + range.first : nullptr,
                        .count = static_cast<std::int64_t>(range.count),
                        .decays = range.decays},
                       {.step = scaling_.updates_of(step),
                        .learning_rate = learning_rate,
                        .gradient_scale = *scale},
                       stream_);
    return true;
  }

  DeviceReducer* reducer_;
  GradientScaling scaling_;
  const AllReduceOptions options_;
  const ParameterLayout layout_, padded_;              // the host's, and the device's
  const std::vector<TrainedRange> trained_, counted_;  // of the device's
  cudaStream_t stream_;
  ParameterView parameters_;
  DeviceBuffer<float> first_, second_;  // velocities, none; or moments
  DeviceBuffer<double> squares_;
  std::vector<std::vector<float>> here_;  // the state as the host has it
  std::vector<std::span<float>> open_;    // a bucket that is being filled
  BucketRule rule_;
  Bytes bytes_{};
};

}  // namespace

std::unique_ptr<GradientExchange> make_device_exchange(DeviceReducer* reducer,
                                                       AllReduceOptions options,
                                                       const ParameterLayout& layout,
                                                       cudaStream_t stream) {
  return std::make_unique<DeviceExchange>(reducer, std::move(options), layout, stream);
}

}  // namespace reckon::cuda
