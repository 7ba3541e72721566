#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "executor/comm/strangers.h"

namespace reckon::test {

/// A network between `listener`, where processes connect, and `to`, that can be cut.
class Relay {
 public:
  Relay(Socket listener, HostPort to)
      : listener_(std::move(listener)), to_(std::move(to)), thread_([this] { run(); }) {}
  ~Relay() {
    over_ = true;
    thread_.join();
  }
  HostPort address() const { return listener_.local(); }
  /// Both sides of all connections see a reset.
  void cut() { end_all(true); }
  /// Both see the orderly end, as of a process that ends.
  void close() { end_all(false); }
  /// Whether new connections reach the other side; else they wait without a word.
  void pass_on(bool on) { passes_on_ = on; }

 private:
  struct Pair {
    Socket near, far;
    bool over = false;
  };

  void end_all(bool reset) {
    const std::lock_guard lock(mutex_);
    for (Pair& pair : pairs_)
      for (const Socket* side : {&pair.near, &pair.far}) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        if (reset) setsockopt(side->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      }
    pairs_.clear();
  }

  static void pass(const Socket& from, const Socket& to) {
    std::array<std::byte, 65536> piece{};
    if (const std::size_t got = receive_some(from, piece))
      send_all(to, std::span(piece).first(got), within_seconds());
  }

  void run() {
    while (!over_) {
      serve();
      usleep(1000);
    }
  }
  void serve() {
    const std::lock_guard lock(mutex_);
    try {
      if (passes_on_)
        if (auto one = accept_one(listener_, Deadline::after(Seconds{})))
          pairs_.push_back({.near = std::move(*one), .far = connect_to(to_, within_seconds())});
    } catch (const SocketError&) {
      // Nobody listens there: whoever came is closed.
    }
    for (Pair& pair : pairs_) try {
        pass(pair.near, pair.far);
        pass(pair.far, pair.near);
      } catch (const SocketError&) {
        pair.over = true;
      }
    pairs_.remove_if([](const Pair& pair) { return pair.over; });
  }

  Socket listener_;
  const HostPort to_;
  std::mutex mutex_;
  std::list<Pair> pairs_;
  std::atomic<bool> over_ = false, passes_on_ = true;
  std::thread thread_;
};

}  // namespace reckon::test
