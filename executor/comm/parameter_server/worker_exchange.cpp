#include "executor/comm/parameter_server/worker_exchange.h"

#include <array>
#include <chrono>
#include <utility>

#include "executor/comm/work_queue.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

class WorkerExchange final : public GradientExchange {
 public:
  WorkerExchange(Communicator& worker, std::unique_ptr<GradientExchange> servers, bool in_lockstep)
      : worker_(worker), servers_(std::move(servers)), in_lockstep_(in_lockstep) {
    RECKON_CHECK((servers_ != nullptr) == (worker.rank() == 0));
    RECKON_CHECK(!servers_ || !servers_->pulls_rows());
  }

  void start(ParameterView parameters) override {
    view_ = parameters;
    if (servers_) servers_->start(parameters);
    worker_.broadcast(std::as_writable_bytes(view_.values), 0);
  }

  void gradient_ready(ParameterRange range) override {
    if (range.count == 0) return;
    sent_ += Bytes{double(range.count * sizeof(float)) * 2 * (worker_.size() - 1) / worker_.size()};
    queue_.push([this, range] {
      worker_.all_reduce(view_.gradients.subspan(range.first, range.count));
      if (servers_) servers_->gradient_ready(range);
    });
  }

  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    const auto begin = Clock::now();
    queue_.wait_for_all();
    const Seconds summing = Clock::now() - begin, busy = queue_.take_busy();
    ExchangeTimes times;
    if (servers_) times = servers_->finish_step(step, learning_rate);
    const auto told = Clock::now();
    end_.tell(worker_, servers_.get(), times);
    worker_.broadcast(std::as_writable_bytes(view_.values), 0);
    const Seconds telling = Clock::now() - told;
    times.communication += busy + telling;
    times.exposed_communication += summing + telling;
    times.sent += std::exchange(sent_, {});
    return times;
  }

  void request_stop() override {
    if (servers_) servers_->request_stop();
  }
  std::optional<std::int64_t> stop_step() const override { return end_.stop_step(); }
  void begin_at(std::int64_t step) override {
    if (servers_) servers_->begin_at(step);
  }
  void end_steps() override {
    if (servers_) servers_->end_steps();
  }
  std::vector<RankProgress> progress() override {
    return servers_ ? servers_->progress() : std::vector<RankProgress>();
  }
  void take_final_values() override {
    if (servers_) servers_->take_final_values();
  }
  std::vector<std::span<float>> optimizer_state() override {
    const auto of_servers =
        servers_ ? servers_->optimizer_state() : std::vector<std::span<float>>();
    return in_lockstep_ ? share_buffers(worker_, of_servers, state_) : of_servers;
  }
  std::vector<std::span<float>> optimizer_state_to_restore() override {
    RECKON_CHECK(servers_ != nullptr);
    return servers_->optimizer_state();
  }
  void restore_optimizer_state() override {
    if (servers_) servers_->restore_optimizer_state();
  }

 private:
  Communicator& worker_;
  std::unique_ptr<GradientExchange> servers_;
  const bool in_lockstep_;
  ParameterView view_;
  StepOfWorker end_;
  std::vector<std::vector<float>> state_;  // the optimizer's, of the others than rank 0
  Bytes sent_{};
  WorkQueue queue_;  // ends before what it uses
};

}  // namespace

void StepOfWorker::tell(Communicator& worker, const GradientExchange* servers,
                        ExchangeTimes& times) {
  std::array<std::int64_t, 2> told{times.next_step, -1};
  if (servers != nullptr) told[1] = servers->stop_step().value_or(-1);
  worker.broadcast(std::as_writable_bytes(std::span(told)), 0);
  times.next_step = told[0];
  if (told[1] >= 0) stop_step_ = told[1];
}

std::vector<std::span<float>> share_buffers(Communicator& worker,
                                            const std::vector<std::span<float>>& of_first,
                                            std::vector<std::vector<float>>& own) {
  std::array<std::int64_t, 2> size{std::int64_t(of_first.size()),
                                   of_first.empty() ? 0 : std::int64_t(of_first[0].size())};
  worker.broadcast(std::as_writable_bytes(std::span(size)), 0);
  std::vector<std::span<float>> shared = of_first;
  if (worker.rank() != 0) {
    own.assign(std::size_t(size[0]), std::vector<float>(std::size_t(size[1])));
    shared.assign(own.begin(), own.end());
  }
  for (const std::span<float> buffer : shared) worker.broadcast(std::as_writable_bytes(buffer), 0);
  return shared;
}

std::unique_ptr<GradientExchange> make_worker_exchange(Communicator& worker,
                                                       std::unique_ptr<GradientExchange> servers,
                                                       bool in_lockstep) {
  return std::make_unique<WorkerExchange>(worker, std::move(servers), in_lockstep);
}

}  // namespace reckon
