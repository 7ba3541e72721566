#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

/// For whoever waits at a connection that the loss of a rank need not end: the rank's machine is
/// away, or it is another's connection.
class LossWatch {
 public:
  /// A connection that does end says more of the cause, and says it sooner.
  static constexpr Seconds kForTheConnections{1};

  /// While this lives, `act` is called once, from another thread, kForTheConnections after a rank
  /// is lost (Membership::on_loss()). It is not called, or has returned, once this object is gone.
  LossWatch(Membership& membership, std::function<void()> act) {
    state_->act = std::move(act);
    membership.on_loss([state = state_] { begin(state); });
  }
  ~LossWatch() {
    std::unique_lock lock(state_->mutex);
    state_->over = true;
    state_->ended.notify_all();
    std::thread thread = std::move(state_->thread);
    lock.unlock();
    if (thread.joinable()) thread.join();
  }
  LossWatch(const LossWatch&) = delete;
  LossWatch& operator=(const LossWatch&) = delete;

 private:
  struct State {
    std::function<void()> act;
    std::mutex mutex;
    std::condition_variable ended;
    bool over = false;
    std::thread thread;
  };
  static void begin(const std::shared_ptr<State>& state) {
    const std::lock_guard lock(state->mutex);
    if (state->over) return;
    state->thread = std::thread([state] {
      std::unique_lock wait(state->mutex);
      const auto over = [&] { return state->over; };
      if (state->ended.wait_for(wait, kForTheConnections, over)) return;
      wait.unlock();
      state->act();
    });
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace reckon
