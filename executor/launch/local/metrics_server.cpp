#include "executor/launch/local/metrics_server.h"

#include <mutex>
#include <utility>

#include "executor/http/http_server.h"

namespace reckon {
namespace {

constexpr std::size_t kMostConnections = 64;  // a few Prometheus servers, and people who look

}  // namespace

class MetricsServer::Server {
 public:
  Server(const ListenAddress& address, std::string token)
      : http_({.listen = address, .token = std::move(token), .connections = kMostConnections},
              [this](const HttpRequest& request, const HttpAnswerLater&) {
                return reply_to(request);
              }) {}

  ListenAddress address() const { return http_.address(); }
  void publish(std::string page) {
    const std::lock_guard lock(mutex_);
    page_ = std::move(page);
  }

 private:
  HttpReply reply_to(const HttpRequest& request) {
    if (request.method != "GET" && request.method != "HEAD")
      return {.status = 405, .body = "GET /metrics\n", .allow = "GET, HEAD"};
    if (request.path != "/metrics") return {.status = 404, .body = "metrics are at /metrics\n"};
    const std::lock_guard lock(mutex_);
    // [Prometheus, "Exposition formats", text format 0.0.4]
    return {.body = page_, .type = "text/plain; version=0.0.4; charset=utf-8"};
  }

  std::mutex mutex_;
  std::string page_;
  HttpServer http_;  // last: its thread reads the page
};

MetricsServer::MetricsServer(const ListenAddress& address, std::string token)
    : server_(std::make_unique<Server>(address, std::move(token))) {}
MetricsServer::~MetricsServer() = default;
ListenAddress MetricsServer::address() const { return server_->address(); }
void MetricsServer::publish(std::string page) { server_->publish(std::move(page)); }

}  // namespace reckon
