#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/gradient_scaling.h"
#include "executor/cuda/exchange/offload.h"
#include "sim/base/check.h"
#include "sim/step/buckets.h"

namespace reckon::cuda {
namespace {

std::size_t elements_of(const std::vector<TrainedRange>& ranges) {
  std::size_t count = 0;
  for (const TrainedRange& range : ranges) count += range.count;
  return count;
}

class OffloadedExchange final : public GradientExchange {
 public:
  OffloadedExchange(DeviceReducer& reducer, Communicator& hosts, AllReduceOptions options,
                    DeviceParameters& parameters, cudaStream_t stream)
      : reducer_(reducer),
        hosts_(hosts),
        options_(std::move(options)),
        parameters_(parameters),
        stream_(stream),
        optimizer_(options_.optimizer, parameters.layout().count, options_.trained),
        gradients_(parameters.layout().count),
        upload_(parameters.precision()) {
    RECKON_CHECK(options_.of_experts.empty());
  }

  void start(ParameterView parameters) override {
    RECKON_CHECK(parameters.values.size() == parameters_.layout().count);
    hosts_.broadcast(std::as_writable_bytes(parameters.values), 0);
    parameters_.to_device();
  }

  void gradient_ready(ParameterRange range) override {
    if (range.count == 0) return;
    open_.push_back(range);
    if (reducer_.size() == 1) return bring_open();
    const Bytes bytes{static_cast<double>(range.count * sizeof(float))};
    bytes_ += bytes;
    if (rule_.add(bytes) && options_.overlap) bring_open();
  }

  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    using Clock = std::chrono::steady_clock;
    ExchangeTimes times;
    times.next_step = step + 1;
    check(cudaStreamSynchronize(stream_), "backward pass");
    const auto backward_end = Clock::now();
    if (!open_.empty()) bring_open();
    rule_ = {};
    check(cudaStreamSynchronize(copies_.get()), "gradients");
    RECKON_CHECK(std::exchange(brought_, 0) == elements_of(options_.trained));
    auto begin = backward_end;
    if (const int ranks = reducer_.size(); ranks > 1) {
      begin = Clock::now();
      times.exposed_communication = times.communication = begin - backward_end;
      times.sent = std::exchange(bytes_, {}) * (2.0 * (ranks - 1) / ranks);
    }
    times.skipped = !apply(step, learning_rate);
    times.apply = Clock::now() - begin;
    return times;
  }

  void scaled_by(double scale, std::int64_t skipped) override { scaling_ = {scale, skipped}; }
  std::vector<std::span<float>> optimizer_state() override { return optimizer_.state(); }
  void restore_optimizer_state() override {}  // it is written in place

 private:
  /// The sums of what is open, to the host.
  void bring_open() {
    const std::span<float> there = parameters_.gradients(0);
    if (reducer_.size() == 1) {
      check(cudaEventRecord(made_.get(), stream_), "gradients");
      check(cudaStreamWaitEvent(copies_.get(), made_.get(), 0), "gradients");
    } else {
      std::vector<std::span<float>> sums;
      for (const ParameterRange& range : open_)
        sums.push_back(there.subspan(range.first, range.count));
      reducer_.queue_sums(sums, stream_);
      reducer_.join(copies_.get());
    }
    for (const ParameterRange& range : std::exchange(open_, {})) bring(range, there);
  }

  /// Of the padded layout.
  void bring(ParameterRange range, std::span<const float> there) {
    const auto &here = parameters_.layout().slots, &padded = parameters_.padded().slots;
    const auto first = std::ranges::lower_bound(padded, range.first, {}, &ParameterSlot::first);
    for (auto s = static_cast<std::size_t>(first - padded.begin());
         s < padded.size() && padded[s].first < range.first + range.count; ++s) {
      if (!here[s].trained) continue;
      const auto to = gradients_.span().subspan(here[s].first, here[s].count);
      queue_to_host(std::as_writable_bytes(to), there.data() + padded[s].first, copies_.get(),
                    "gradients");
      brought_ += to.size();
    }
  }

  /// nullopt: a gradient is not finite, and nothing is to be updated.
  std::optional<double> scale_of_gradients() {
    if (options_.clip_norm <= 0 && !scaling_.on()) return 1;
    double squares = 0;
    for (const TrainedRange& range : options_.counted.value_or(options_.trained))
      squares += squared_norm(gradients_.span().subspan(range.first, range.count));
    if (options_.squares_of_all) squares = options_.squares_of_all(squares);
    if (scaling_.overflowed(squares)) return std::nullopt;
    return scaling_.gradient_scale(squares, options_.clip_norm);
  }

  /// False: nothing was updated.
  bool apply(std::int64_t step, double learning_rate) {
    const std::optional<double> scale = scale_of_gradients();
    if (!scale) return false;
    const std::span<float> values = parameters_.host();
    optimizer_.update(scaling_.updates_of(step), learning_rate, *scale, values, gradients_.span());
    const auto& slots = parameters_.layout().slots;
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (slots[s].trained)
        upload_.queue(values.subspan(slots[s].first, slots[s].count), parameters_.weights_of(s),
                      copies_.get());
    check(cudaStreamSynchronize(copies_.get()), "new weights");
    return true;
  }

  DeviceReducer& reducer_;
  Communicator& hosts_;
  GradientScaling scaling_;
  const AllReduceOptions options_;
  DeviceParameters& parameters_;
  cudaStream_t stream_;
  FlatOptimizer optimizer_;
  PinnedBuffer<float> gradients_;  // as the host's layout has them
  WeightUpload upload_;
  OwnStream copies_;
  Event made_;
  std::vector<ParameterRange> open_;  // a bucket that is being filled
  BucketRule rule_;
  Bytes bytes_{};
  std::size_t brought_ = 0;  // elements, in this step
};

}  // namespace

std::unique_ptr<GradientExchange> make_offloaded_exchange(DeviceReducer& reducer,
                                                          Communicator& hosts,
                                                          AllReduceOptions options,
                                                          DeviceParameters& parameters,
                                                          cudaStream_t stream) {
  return std::make_unique<OffloadedExchange>(reducer, hosts, std::move(options), parameters,
                                             stream);
}

}  // namespace reckon::cuda
