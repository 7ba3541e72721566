#pragma once
#include <gloo/rendezvous/context.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "executor/comm/gloo/gloo_sends.h"

namespace reckon {

/// All connections of this process, of a communicator and of its subgroups. Where one fails, or
/// where the rendezvous says that a rank is lost, all fail: whoever waits in another group, a peer
/// or a thread of this rank, learns of it at once, not at its deadline.
class GlooContexts {
 public:
  const std::shared_ptr<GlooSends>& sends() const { return sends_; }
  void add(const std::shared_ptr<gloo::rendezvous::Context>& context) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& other) { return other.expired(); });
    all_.push_back(context);
    if (failed_) fail(*context);
  }
  void fail() {
    sends_->end();
    const std::lock_guard lock(mutex_);
    failed_ = true;
    for (const auto& weak : all_)
      if (const auto context = weak.lock()) fail(*context);
  }

 private:
  /// Gloo's closeConnections() wakes the peers only: a thread of this rank that waits on a pair, or
  /// comes to it later, would stay to its deadline. A wait that times out fails all pairs of its
  /// context (gloo/transport/tcp/unbound_buffer.cc, waitRecv), so this waits for what nobody sends.
  static void fail(gloo::rendezvous::Context& context) {
    std::byte nothing{};
    const auto buffer = context.createUnboundBuffer(&nothing, sizeof nothing);
    try {
      buffer->waitRecv(nullptr, std::chrono::milliseconds(0));
    } catch (const std::exception&) {
      context.closeConnections();
    }
  }

  std::shared_ptr<GlooSends> sends_ = std::make_shared<GlooSends>();
  std::mutex mutex_;
  std::vector<std::weak_ptr<gloo::rendezvous::Context> > all_;
  bool failed_ = false;
};

}  // namespace reckon
