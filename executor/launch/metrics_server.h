#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace reckon {

/// Answers GET /metrics over HTTP, for Prometheus, from a thread of its own: a client that is slow
/// or silent delays nobody. Readers only; what it answers is the text that was published last.
class MetricsServer {
 public:
  /// Listens on all of this machine's IPv4 addresses; port 0: any free one. Throws
  /// std::runtime_error where the port is in use or may not be taken.
  explicit MetricsServer(std::uint16_t port);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const;
  /// The page from now on: Prometheus' text format.
  void publish(std::string page);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace reckon
