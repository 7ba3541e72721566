#include "executor/launch/local/metrics.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <span>
#include <utility>

#include "executor/comm/socket.h"

namespace reckon {
namespace {

constexpr std::size_t kLargestPage = std::size_t{16} << 20;

/// The body of a page; nullopt: nobody answers, or not with a page.
std::optional<std::string> page_at(int port, const std::string& path) {
  try {
    const Deadline deadline = Deadline::after(Seconds{1});
    const Socket socket = connect_to({"127.0.0.1", std::uint16_t(port)}, deadline);
    const std::string request =
        fmt::format("GET {} HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n", path);
    send_all(socket, std::as_bytes(std::span(request)), deadline);
    std::string answer;
    std::array<char, 16384> part{};
    while (answer.size() < kLargestPage && wait_readable(socket, deadline)) {
      const ssize_t n = ::recv(socket.fd(), part.data(), part.size(), 0);
      if (n <= 0) break;
      answer.append(part.data(), std::size_t(n));
    }
    const std::size_t body = answer.find("\r\n\r\n");
    const bool good = answer.starts_with("HTTP/1.") && answer.compare(8, 5, " 200 ") == 0;
    if (!good || body == std::string::npos) return std::nullopt;
    return answer.substr(body + 4);
  } catch (const SocketError&) {
    return std::nullopt;
  }
}

}  // namespace

LocalMetrics::LocalMetrics(int port, std::string path, Seconds every)
    : port_(port),
      path_(std::move(path)),
      every_(every),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

LocalMetrics::~LocalMetrics() = default;

std::optional<std::string> LocalMetrics::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(page_, std::nullopt);
}

void LocalMetrics::run(const std::stop_token& stop) {
  std::condition_variable_any timer;
  while (!stop.stop_requested()) {
    auto page = page_at(port_, path_);
    std::unique_lock lock(mutex_);
    if (page) page_ = std::move(page);
    timer.wait_for(lock, stop, std::chrono::duration_cast<std::chrono::milliseconds>(every_),
                   [] { return false; });
  }
}

}  // namespace reckon
