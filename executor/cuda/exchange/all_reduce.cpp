#include "executor/cuda/exchange/all_reduce.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/gradient_scaling.h"
#include "executor/comm/prepared_update.h"
#include "executor/cuda/exchange/gradient_sums.h"
#include "executor/cuda/exchange/optimizer.h"
#include "executor/cuda/memory/parameters.h"
#include "executor/train/recipe/recipe.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

using Clock = std::chrono::steady_clock;

class DeviceExchange final : public GradientExchange {
 public:
  DeviceExchange(DeviceReducer* reducer, DeviceReducer* expert_replicas, AllReduceOptions options,
                 const ParameterLayout& layout, cudaStream_t stream)
      : reducer_(reducer),
        expert_replicas_(expert_replicas),
        options_(std::move(options)),
        layout_(layout),
        padded_(device_layout(layout)),
        sums_(reducer, expert_replicas, padded_),
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
    share_first_values();
  }

  void gradient_ready(ParameterRange range) override {
    RECKON_CHECK(range.first + range.count <= parameters_.gradients.size());
    OpenSums& sums = sums_.of(range);
    if (sums.ranks() > 1 && sums.add(range) && options_.overlap)
      sums.send(parameters_.gradients, stream_);
  }

  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    ExchangeTimes times;
    times.next_step = step + 1;
    if (sums_.all().ranks() > 1) {
      check(cudaStreamSynchronize(stream_), "backward pass");
      const auto backward_end = Clock::now();
      for (OpenSums* sums : sums_.both()) {
        sums->send(parameters_.gradients, stream_);
        sums->join(stream_);
        times.sent += sums->take_sent();
      }
      check(cudaStreamSynchronize(stream_), "sum of gradients");
      for (OpenSums* sums : sums_.both()) sums->check_peers();
      times.exposed_communication = times.communication = Clock::now() - backward_end;
    }
    const auto begin = Clock::now();
    times.skipped = !apply(step, learning_rate);
    check(cudaStreamSynchronize(stream_), "optimizer");
    times.apply = Clock::now() - begin - prepared_.agreeing();
    times.communication += prepared_.agreeing();
    times.exposed_communication += prepared_.agreeing();
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
  std::optional<ExchangeTimes> make_up_update() override {
    auto times = prepared_.make_up_after_loss([this](const auto& s) { update(s); });
    check(cudaStreamSynchronize(stream_), "optimizer");
    return times;
  }
  void restore_optimizer_state() override {
    RECKON_CHECK(here_.size() == moments().size());
    for_slots(
        [](float* here, float* there, std::size_t bytes) { copy_to_device(there, here, bytes); });
  }

 private:
  /// Rank 0's; but those of experts are those of their replicas' rank 0.
  void share_first_values() {
    if (sums_.all().ranks() == 1) return;
    std::vector<std::vector<float>> own;
    for (const ParameterSlot& slot : padded_.slots) {
      if (!slot.of_experts) continue;
      own.emplace_back(slot.count);
      copy_to_host(own.back().data(), values_of(slot).data(), values_of(slot).size_bytes());
    }
    reducer_->broadcast_values(parameters_.values);
    for (std::size_t s = 0, next = 0; s < padded_.slots.size(); ++s) {
      if (!padded_.slots[s].of_experts) continue;
      const std::span<float> there = values_of(padded_.slots[s]);
      copy_to_device(there.data(), own[next++].data(), there.size_bytes());
      if (sums_.experts().ranks() > 1) expert_replicas_->broadcast_values(there);
    }
  }
  std::span<float> values_of(const ParameterSlot& slot) const {
    return parameters_.values.subspan(slot.first, slot.count);
  }
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
  double own_squares() {
    double squares = 0;
    for (const TrainedRange& range : counted_)
      squares += squared_norm_on_device(parameters_.gradients.data() + range.first, range.count,
                                        squares_, stream_);
    return squares;
  }

  /// False: nothing was updated.
  bool apply(std::int64_t step, double learning_rate) {
    const std::optional<double> scale = scaling_.scale_of_step(
        options_.clip_norm, [this] { return own_squares(); }, options_.squares_of_all);
    return prepared_.make({.step = step, .learning_rate = learning_rate, .gradient_scale = scale},
                          options_.before_update,
                          [this](const PreparedUpdate::Step& s) { update(s); });
  }
  void update(const PreparedUpdate::Step& step) {
    for (const TrainedRange& range : trained_)
      update_on_device(options_.optimizer,
                       {.values = parameters_.values.data() + range.first,
                        .gradients = parameters_.gradients.data() + range.first,
                        .first = first_.data() + range.first,
                        .second = second_.size() > 0 ? second_.data() + range.first : nullptr,
                        .count = static_cast<std::int64_t>(range.count),
                        .decays = range.decays},
                       {.step = scaling_.updates_of(step.step),
                        .learning_rate = step.learning_rate,
                        .gradient_scale = *step.gradient_scale},
                       stream_);
  }

  DeviceReducer *reducer_, *expert_replicas_;  // null: this device alone
  GradientScaling scaling_;
  PreparedUpdate prepared_;
  const AllReduceOptions options_;
  const ParameterLayout layout_, padded_;  // the host's, and the device's
  GradientSums sums_;
  const std::vector<TrainedRange> trained_, counted_;  // of the device's
  cudaStream_t stream_;
  ParameterView parameters_;
  DeviceBuffer<float> first_, second_;  // velocities, none; or moments
  DeviceBuffer<double> squares_;
  std::vector<std::vector<float>> here_;  // the state as the host has it
};

}  // namespace

std::unique_ptr<GradientExchange> make_device_exchange(DeviceReducer* reducer,
                                                       AllReduceOptions options,
                                                       const ParameterLayout& layout,
                                                       cudaStream_t stream,
                                                       DeviceReducer* expert_replicas) {
  return std::make_unique<DeviceExchange>(reducer, expert_replicas, std::move(options), layout,
                                          stream);
}

}  // namespace reckon::cuda
