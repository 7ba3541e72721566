#include "loopback/open_loop.h"

#include <poll.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <span>
#include <stdexcept>

#include "executor/comm/socket.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Purpose kArrivals{"loopback_arrivals"};
constexpr Seconds kPatience{60};   // with the server, in all, behind the last request
constexpr int kOpenedAtOnce = 64;  // before the first request
constexpr long kNanoseconds = 1'000'000'000;

Clock::duration to_clock_duration(Seconds s) {
  return std::chrono::duration_cast<Clock::duration>(s);
}

struct Connection {
  Socket socket;
  bool busy = false;
  Clock::time_point due;
  std::string got;

  /// Whether the whole answer has come.
  bool complete() const {
    const std::size_t head = got.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::size_t at = got.find("Content-Length: ");
    const std::size_t length =
        at < head ? std::strtoul(got.c_str() + at + 16, nullptr, 10) : std::size_t{0};
    return got.size() >= head + 4 + length;
  }
};

class OpenLoop {
 public:
  OpenLoop(std::uint16_t port, const std::string& request) : port_(port), request_(request) {
    for (int k = 0; k < kOpenedAtOnce; ++k) open();
    ::prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; as it is by default, sleeps are 50 us too long
  }

  LoadResult run(double rate, Seconds length, std::uint64_t seed) {
    RandomStream random(seed, 0, kArrivals, 0);
    const auto begin = Clock::now() + std::chrono::milliseconds(50);
    const auto end = begin + to_clock_duration(length);
    auto due = begin + to_clock_duration(Seconds{random.exponential() / rate});
    while (due < end || outstanding_ > 0) {
      const auto now = Clock::now();
      if (due < end && due <= now) {
        send(due);
        due += to_clock_duration(Seconds{random.exponential() / rate});
        continue;
      }
      if (now > end + to_clock_duration(kPatience))
        throw std::runtime_error("the server does not answer");
      wait(due < end ? due - now : std::chrono::milliseconds(100));
    }
    return std::move(result_);
  }

 private:
  Connection& open() {
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->socket = connect_to({"127.0.0.1", port_}, Deadline::after(kPatience));
    polled_.push_back({connections_.back()->socket.fd(), POLLIN, 0});
    return *connections_.back();
  }
  Connection& free_connection() {
    for (auto& connection : connections_)
      if (!connection->busy) return *connection;
    return open();
  }
  void send(Clock::time_point due) {
    Connection& c = free_connection();
    c.busy = true;
    c.due = due;
    result_.late.emplace_back(Clock::now() - due);
    send_all(c.socket, std::as_bytes(std::span(request_)), Deadline::after(kPatience));
    ++outstanding_;
  }
  void wait(Clock::duration most) {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(most).count();
    const timespec time{ns / kNanoseconds, ns % kNanoseconds};
    if (::ppoll(polled_.data(), polled_.size(), &time, nullptr) <= 0) return;
    for (std::size_t k = polled_.size(); k-- > 0;) {
      if (polled_[k].revents == 0) continue;
      if (connections_[k]->busy) {
        receive(*connections_[k]);
      } else {  // silent for so long that the server has closed it
        connections_.erase(connections_.begin() + std::ptrdiff_t(k));
        polled_.erase(polled_.begin() + std::ptrdiff_t(k));
      }
    }
  }
  void receive(Connection& c) {
    std::byte part[16384];
    const std::size_t n = receive_some(c.socket, part);
    c.got.append(reinterpret_cast<const char*>(part), n);
    if (!c.complete()) return;
    result_.latencies.emplace_back(Clock::now() - c.due);
    result_.failed += c.got.starts_with("HTTP/1.1 200") ? 0 : 1;
    c.got.clear();
    c.busy = false;
    --outstanding_;
  }

  std::uint16_t port_;
  const std::string& request_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<pollfd> polled_;
  LoadResult result_;
  int outstanding_ = 0;
};

}  // namespace

LoadResult send_open_loop(std::uint16_t port, const std::string& request, double rate,
                          Seconds length, std::uint64_t seed) {
  return OpenLoop(port, request).run(rate, length, seed);
}

}  // namespace reckon
