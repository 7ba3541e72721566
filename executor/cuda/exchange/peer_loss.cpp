#include "executor/cuda/exchange/peer_loss.h"

#include <cuda_runtime.h>

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
  std::condition_variable changed;
  bool lost = false, closed = false, idle = false;
  std::vector<std::function<void()>> acts;
  int acting = 0;
  std::vector<std::thread> threads;

  /// With the mutex.
  void begin(std::function<void()> act) {
    ++acting;
    threads.emplace_back([this, act = std::move(act)] {
      act();
      const std::lock_guard lock(mutex);
      --acting;
      changed.notify_all();
    });
  }

  void end_waiting(int device) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return acting == 0; });
    lock.unlock();
    if (cudaSetDevice(device) == cudaSuccess) (void)cudaDeviceSynchronize();
    lock.lock();
    idle = true;
    changed.notify_all();
  }

  void guard(Seconds patience) {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, patience, [this] { return idle; })) return;
    print_error(
        "reckon-worker: error: a rank is lost, and the device does not stop waiting for it: this "
        "process ends, so that another can take its place\n");
    std::_Exit(kExitLostPeer);
  }
};

PeerLoss::PeerLoss(const std::function<void(std::function<void()> act)>& watch,
                   std::function<CommError(const std::string& what)> error, int device,
                   Seconds patience)
    : state_(std::make_shared<State>()), error_(std::move(error)) {
  watch([weak = std::weak_ptr(state_), device, patience] {
    const auto shared = weak.lock();
    if (!shared) return;
    const std::lock_guard lock(shared->mutex);
    if (shared->closed) return;
    shared->lost = true;
    State* const state = shared.get();  // whose threads are over before it is gone
    for (auto& act : std::exchange(state->acts, {})) state->begin(std::move(act));
    if (state->acting == 0) return;  // nothing can hang
    state->threads.emplace_back([state, device] { state->end_waiting(device); });
    state->threads.emplace_back([state, patience] { state->guard(patience); });
  });
}

PeerLoss::~PeerLoss() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    threads = std::move(state_->threads);
  }
  for (std::thread& one : threads) one.join();  // within the guard's patience
}

bool PeerLoss::is_lost() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lost;
}

void PeerLoss::on_loss(std::function<void()> act) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->lost)
    state_->begin(std::move(act));
  else
    state_->acts.push_back(std::move(act));
}

}  // namespace reckon::cuda
