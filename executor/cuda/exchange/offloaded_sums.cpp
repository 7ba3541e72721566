#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/first_values.h"
#include "executor/comm/gradient_scaling.h"
#include "executor/comm/prepared_update.h"
#include "executor/cuda/exchange/gradient_sums.h"
#include "executor/cuda/exchange/host_update.h"
#include "executor/cuda/exchange/offload.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

std::size_t elements_of(const std::vector<TrainedRange>& ranges) {
  std::size_t count = 0;
  for (const TrainedRange& range : ranges) count += range.count;
  return count;
}

class OffloadedExchange final : public GradientExchange {
 public:
  OffloadedExchange(DeviceReducer& reducer, DeviceReducer* expert_replicas, Communicator& hosts,
                    AllReduceOptions options, DeviceParameters& parameters, Workers& workers,
                    cudaStream_t stream)
      : sums_(&reducer, expert_replicas, parameters.padded()),
        hosts_(hosts),
        options_(std::move(options)),
        parameters_(parameters),
        workers_(workers),
        stream_(stream),
        optimizer_(options_.optimizer, parameters.layout().count, options_.trained),
        gradients_(parameters.layout().count),
        upload_(parameters.precision(), workers) {
    RECKON_CHECK(options_.of_experts.empty() || expert_replicas != nullptr);
  }

  void start(ParameterView parameters) override {
    RECKON_CHECK(parameters.values.size() == parameters_.layout().count);
    share_first_values(parameters.values, hosts_, options_.of_experts, options_.expert_replicas);
    parameters_.to_device();
  }

  void gradient_ready(ParameterRange range) override {
    if (range.count == 0) return;
    OpenSums& sums = sums_.of(range);
    const bool full = sums.add(range);
    if (sums.ranks() == 1 || (full && options_.overlap)) bring_open(sums);
  }

  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    using Clock = std::chrono::steady_clock;
    ExchangeTimes times;
    times.next_step = step + 1;
    check(cudaStreamSynchronize(stream_), "backward pass");
    const auto backward_end = Clock::now();
    for (OpenSums* sums : sums_.both()) {
      bring_open(*sums);
      times.sent += sums->take_sent();
    }
    check(cudaStreamSynchronize(copies_.get()), "gradients");
    for (OpenSums* sums : sums_.both()) sums->check_peers();
    RECKON_CHECK(std::exchange(brought_, 0) == elements_of(options_.trained));
    auto begin = backward_end;
    if (sums_.all().ranks() > 1) {
      begin = Clock::now();
      times.exposed_communication = times.communication = begin - backward_end;
    }
    times.skipped = !apply(step, learning_rate);
    times.apply = Clock::now() - begin - prepared_.agreeing();
    times.communication += prepared_.agreeing();
    times.exposed_communication += prepared_.agreeing();
    return times;
  }

  void scaled_by(double scale, std::int64_t skipped) override { scaling_ = {scale, skipped}; }
  std::vector<std::span<float>> optimizer_state() override { return optimizer_.state(); }
  void restore_optimizer_state() override {}  // it is written in place
  std::optional<ExchangeTimes> make_up_update() override {
    return prepared_.make_up_after_loss([this](const auto& s) { update(s); });
  }

 private:
  /// The sums of what is open, to the host.
  void bring_open(OpenSums& sums) {
    if (sums.empty()) return;
    const std::span<float> there = parameters_.gradients(0);
    const std::vector<ParameterRange> ranges = sums.send(there, stream_);
    if (sums.ranks() > 1) {
      sums.join(copies_.get());
    } else {
      check(cudaEventRecord(made_.get(), stream_), "gradients");
      check(cudaStreamWaitEvent(copies_.get(), made_.get(), 0), "gradients");
    }
    for (const ParameterRange& range : ranges) bring(range, there);
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

  double own_squares() {
    double squares = 0;
    for (const TrainedRange& range : options_.counted.value_or(options_.trained))
      squares +=
          squared_norm_on_host(workers_, gradients_.span().subspan(range.first, range.count));
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
    const std::span<float> values = parameters_.host();
    update_on_host(optimizer_, workers_, scaling_.updates_of(step.step), step.learning_rate,
                   *step.gradient_scale, values, gradients_.span());
    const auto& slots = parameters_.layout().slots;
    for (std::size_t s = 0; s < slots.size(); ++s)
      if (slots[s].trained)
        upload_.queue(values.subspan(slots[s].first, slots[s].count), parameters_.weights_of(s),
                      copies_.get());
    check(cudaStreamSynchronize(copies_.get()), "new weights");
  }

  GradientSums sums_;
  Communicator& hosts_;
  GradientScaling scaling_;
  PreparedUpdate prepared_;
  const AllReduceOptions options_;
  DeviceParameters& parameters_;
  Workers& workers_;
  cudaStream_t stream_;
  FlatOptimizer optimizer_;
  PinnedBuffer<float> gradients_;  // as the host's layout has them
  WeightUpload upload_;
  OwnStream copies_;
  Event made_;
  std::size_t brought_ = 0;  // elements, in this step
};

}  // namespace

std::unique_ptr<GradientExchange> make_offloaded_exchange(
    DeviceReducer& reducer, DeviceReducer* expert_replicas, Communicator& hosts,
    AllReduceOptions options, DeviceParameters& parameters, Workers& workers, cudaStream_t stream) {
  return std::make_unique<OffloadedExchange>(reducer, expert_replicas, hosts, std::move(options),
                                             parameters, workers, stream);
}

}  // namespace reckon::cuda
