#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "executor/comm/rendezvous/handshake.h"
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
  /// What comes back on the next connection on which such a message is sent is lost.
  void lose_answers_to(std::uint16_t kind) { unanswered_ = kind; }
  /// Whether new connections reach the other side; else they wait without a word.
  void pass_on(bool on) { passes_on_ = on; }

 private:
  struct Pair {
    Socket near, far;
    bool over = false, unanswered = false;
    void end(bool reset) {
      near.reset_at_close(reset);
      far.reset_at_close(reset);
      over = true;
    }
  };

  void end_all(bool reset) {
    const std::lock_guard lock(mutex_);
    for (Pair& pair : pairs_) pair.end(reset);
    pairs_.clear();
  }

  using Piece = std::array<std::byte, 65536>;
  static std::span<const std::byte> take(const Socket& from, Piece& piece) {
    return std::span(piece).first(receive_some(from, piece));
  }
  void pass(Pair& pair) {
    Piece piece;
    if (const auto there = take(pair.near, piece); !there.empty()) {
      if (unanswered_ != 0 && has(there, unanswered_)) {
        pair.unanswered = true;
        unanswered_ = 0;
      }
      send_all(pair.far, there, within_seconds());
    }
    if (const auto back = take(pair.far, piece); !back.empty() && !pair.unanswered)
      send_all(pair.near, back, within_seconds());
  }
  /// A message of that kind begins in it: magic, version, kind (executor/comm/wire.cpp).
  static bool has(std::span<const std::byte> piece, std::uint16_t kind) {
    std::array<std::byte, 8> head{};
    std::memcpy(head.data(), &kProtocolMagic, 4);
    std::memcpy(head.data() + 4, &kProtocolVersion, 2);
    std::memcpy(head.data() + 6, &kind, 2);
    return std::search(piece.begin(), piece.end(), head.begin(), head.end()) != piece.end();
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
        pass(pair);
      } catch (const SocketError& error) {
        pair.end(error.cut);
      }
    pairs_.remove_if([](const Pair& pair) { return pair.over; });
  }

  Socket listener_;
  const HostPort to_;
  std::mutex mutex_;
  std::list<Pair> pairs_;
  std::atomic<bool> over_ = false, passes_on_ = true;
  std::atomic<std::uint16_t> unanswered_ = 0;
  std::thread thread_;
};

}  // namespace reckon::test
