#pragma once
#include <memory>
#include <string>

#include "executor/http/listen_address.h"

namespace reckon {

/// Answers GET /metrics over HTTP, for Prometheus, from a thread of its own: a client that is slow
/// or silent delays nobody, and however many there are, the run goes on. Readers only; what it
/// answers is the text that was published last.
class MetricsServer {
 public:
  /// `token`: what a request shows as a bearer token, else it is answered with 401; empty: nothing.
  /// Throws std::runtime_error where the address is in use or may not be taken.
  MetricsServer(const ListenAddress& address, std::string token);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  ListenAddress address() const;  // with the port that was found
  /// The page from now on: Prometheus' text format.
  void publish(std::string page);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace reckon
