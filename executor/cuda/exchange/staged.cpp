#include "executor/cuda/exchange/staged.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "executor/comm/parameter_server/worker_exchange.h"
#include "executor/cuda/memory/parameters.h"
#include "executor/cuda/memory/streams.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

using Clock = std::chrono::steady_clock;

class StagedExchange final : public GradientExchange {
 public:
  StagedExchange(std::unique_ptr<GradientExchange> host, const ParameterLayout& layout,
                 cudaStream_t stream, StagedWorker worker)
      : host_(std::move(host)),
        worker_(worker),
        layout_(layout),
        padded_(device_layout(layout)),
        stream_(stream),
        values_(layout.count),
        gradients_(layout.count) {
    RECKON_CHECK((worker.devices == nullptr) == (worker.hosts == nullptr));
    RECKON_CHECK((host_ != nullptr) == (worker.hosts == nullptr || worker.hosts->rank() == 0));
    RECKON_CHECK(!host_ || !host_->keeps_parts());
    RECKON_CHECK(!host_ || !host_->pulls_rows() || worker.hosts == nullptr);
  }

  void start(ParameterView parameters) override {
    RECKON_CHECK(parameters.values.size() == padded_.count);
    device_ = parameters;
    if (host_) {
      for_slots([&](float* here, float* there, std::size_t bytes) {
        check(cudaMemcpyAsync(here, there, bytes, cudaMemcpyDeviceToHost, stream_), "parameters");
      });
      check(cudaStreamSynchronize(stream_), "parameters");
      host_->start({values_.span(), gradients_.span()});
    }
    take_values();
  }

  bool pulls_rows() const override { return host_ && host_->pulls_rows(); }
  std::vector<std::size_t> need_rows(std::size_t table,
                                     std::span<const std::int64_t> ids) override {
    std::vector<std::size_t> places = host_->need_rows(table, ids);
    if (places.empty()) return places;
    const auto here = std::ranges::find(layout_.slots, table, &ParameterSlot::first);
    RECKON_CHECK(here != layout_.slots.end() && here->pulled);
    const auto width = static_cast<std::size_t>(here->shape[1]);
    const std::size_t slot = static_cast<std::size_t>(here - layout_.slots.begin());
    check(cudaMemcpyAsync(device_.values.data() + padded_.slots[slot].first,
                          values_.span().data() + table,
                          (std::ranges::max(places) + 1) * width * sizeof(float),
                          cudaMemcpyHostToDevice, stream_),
          "rows of tables");
    return places;
  }
  void forget_passes() override {
    if (host_) host_->forget_passes();
  }
  void draw_tables_by(std::function<void(std::size_t, std::span<float>)> draw) override {
    host_->draw_tables_by(std::move(draw));
  }
  std::vector<WholeTable> fetch_tables(bool with_optimizer) override {
    return host_->fetch_tables(with_optimizer);
  }
  void restore_tables(std::span<const WholeTable> tables) override {
    host_->restore_tables(tables);
  }

  void gradient_ready(ParameterRange range) override {
    if (range.count == 0) return;
    const std::span<float> part = device_.gradients.subspan(range.first, range.count);
    if (worker_.devices != nullptr) worker_.devices->queue_sums(std::span(&part, 1), stream_);
    if (!host_) return;
    made_.emplace_back();
    Copy& copy = made_.back();
    if (worker_.devices != nullptr) {
      worker_.devices->join(copies_.get());
    } else {
      check(cudaEventRecord(copy.event.get(), stream_), "gradients");
      check(cudaStreamWaitEvent(copies_.get(), copy.event.get(), 0), "gradients");
    }
    for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
      const ParameterSlot &here = layout_.slots[s], &there = padded_.slots[s];
      if (there.first < range.first || there.first >= range.first + range.count) continue;
      if (copy.range.count == 0) copy.range.first = here.first;
      copy.range.count = here.first + here.count - copy.range.first;
      check(cudaMemcpyAsync(gradients_.span().data() + here.first,
                            device_.gradients.data() + there.first, here.count * sizeof(float),
                            cudaMemcpyDeviceToHost, copies_.get()),
            "gradients");
    }
    check(cudaEventRecord(copy.event.get(), copies_.get()), "gradients");
    while (!made_.empty() && cudaEventQuery(made_.front().event.get()) == cudaSuccess) hand_on();
    static_cast<void>(cudaGetLastError());  // that one is not ready is no error of the next launch
  }

  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    const auto begin = Clock::now();
    while (!made_.empty()) {
      check(cudaEventSynchronize(made_.front().event.get()), "gradients");
      hand_on();
    }
    if (worker_.devices != nullptr) worker_.devices->join(stream_);
    check(cudaStreamSynchronize(stream_), "backward pass");
    const Seconds copied = Clock::now() - begin;
    ExchangeTimes times;
    if (host_) times = host_->finish_step(step, learning_rate);
    const auto back = Clock::now();
    if (worker_.hosts != nullptr) end_.tell(*worker_.hosts, host_.get(), times);
    take_values();
    const Seconds copying = copied + (Clock::now() - back);
    times.communication += copying;
    times.exposed_communication += copying;
    return times;
  }

  void request_stop() override {
    if (host_) host_->request_stop();
  }
  std::optional<std::int64_t> stop_step() const override {
    return worker_.hosts == nullptr ? host_->stop_step() : end_.stop_step();
  }
  void begin_at(std::int64_t step) override {
    if (host_) host_->begin_at(step);
  }
  void end_steps() override {
    if (host_) host_->end_steps();
  }
  std::vector<RankProgress> progress() override {
    return host_ ? host_->progress() : std::vector<RankProgress>();
  }
  void take_final_values() override {  // of rank 0 alone
    if (!host_) return;
    host_->take_final_values();
    copy_to_own_device();
  }
  std::vector<std::span<float>> optimizer_state() override {
    const auto of_host = host_ ? host_->optimizer_state() : std::vector<std::span<float>>();
    const bool shared = worker_.hosts != nullptr && worker_.in_lockstep;
    return shared ? share_buffers(*worker_.hosts, of_host, state_) : of_host;
  }
  std::vector<std::span<float>> optimizer_state_to_restore() override {
    RECKON_CHECK(host_ != nullptr);
    return host_->optimizer_state_to_restore();
  }
  void restore_optimizer_state() override {
    if (host_) host_->restore_optimizer_state();
  }

 private:
  /// Gradients of a layer that are on their way to the host.
  struct Copy {
    Event event;
    ParameterRange range{};  // in the host's layout
  };

  void hand_on() {
    host_->gradient_ready(made_.front().range);
    made_.pop_front();
  }
  /// Collective over the ranks of a worker.
  void take_values() {
    if (host_) copy_to_own_device();
    if (worker_.devices != nullptr) worker_.devices->broadcast_values(device_.values);
  }
  void copy_to_own_device() {
    for_slots([&](float* here, float* there, std::size_t bytes) {
      check(cudaMemcpyAsync(there, here, bytes, cudaMemcpyHostToDevice, stream_), "parameters");
    });
    check(cudaStreamSynchronize(stream_), "parameters");
  }
  /// copy(on the host, on the device, bytes) for the values of each slot that a step does not ask
  /// for row by row.
  template <class Take>
  void for_slots(Take copy) {
    for (std::size_t s = 0; s < layout_.slots.size(); ++s)
      if (!layout_.slots[s].pulled)
        copy(values_.span().data() + layout_.slots[s].first,
             device_.values.data() + padded_.slots[s].first,
             layout_.slots[s].count * sizeof(float));
  }

  std::unique_ptr<GradientExchange> host_;
  const StagedWorker worker_;
  StepOfWorker end_;
  std::vector<std::vector<float>> state_;  // the optimizer's, of ranks without a host
  const ParameterLayout layout_, padded_;  // the host's, and the device's
  cudaStream_t stream_;
  OwnStream copies_;
  PinnedBuffer<float> values_, gradients_;
  ParameterView device_;
  std::deque<Copy> made_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_staged_exchange(std::unique_ptr<GradientExchange> host,
                                                       const ParameterLayout& layout,
                                                       cudaStream_t stream, StagedWorker worker) {
  return std::make_unique<StagedExchange>(std::move(host), layout, stream, worker);
}

}  // namespace reckon::cuda
