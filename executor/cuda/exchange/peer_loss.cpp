#include "executor/cuda/exchange/peer_loss.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/standard_streams.h"

namespace reckon::cuda {

struct PeerLoss::State {
  std::mutex mutex;
  std::condition_variable over;
  bool lost = false, closed = false, gone = false;
  std::vector<std::function<void()>> acts;
  std::vector<std::thread> acting;
  std::thread guarding;

  void guard(Seconds patience) {
    std::unique_lock lock(mutex);
    if (over.wait_for(lock, patience, [this] { return gone; })) return;
    print_error(
        "reckon-worker: error: a rank is lost, and the device does not stop waiting for it: this "
        "process ends, so that another can take its place\n");
    std::_Exit(kExitLostPeer);
  }
};

PeerLoss::PeerLoss(const std::function<void(std::function<void()> act)>& watch,
                   std::function<CommError(const std::string& what)> error, Seconds patience)
    : state_(std::make_shared<State>()), error_(std::move(error)) {
  watch([weak = std::weak_ptr(state_), patience] {
    const auto state = weak.lock();
    if (!state) return;
    const std::lock_guard lock(state->mutex);
    if (state->closed) return;
    state->lost = true;
    state->guarding = std::thread([state = state.get(), patience] { state->guard(patience); });
    for (auto& act : std::exchange(state->acts, {})) state->acting.emplace_back(std::move(act));
  });
}

PeerLoss::~PeerLoss() {
  std::vector<std::thread> acting;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    acting = std::move(state_->acting);
  }
  for (std::thread& one : acting) one.join();  // within the guard's patience
  {
    const std::lock_guard lock(state_->mutex);
    state_->gone = true;
  }
  state_->over.notify_all();
  if (state_->guarding.joinable()) state_->guarding.join();
}

void PeerLoss::on_loss(std::function<void()> act) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->lost)
    state_->acting.emplace_back(std::move(act));
  else
    state_->acts.push_back(std::move(act));
}

}  // namespace reckon::cuda
