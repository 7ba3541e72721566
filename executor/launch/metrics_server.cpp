#include "executor/launch/metrics_server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace reckon {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience{10};  // with a client
constexpr std::size_t kLargestRequest = 16384;

/// The processes of the job must not hold our sockets open.
void close_on_exec(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

class Page {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  std::string get() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

http::response<http::string_body> answer_to(const http::request<http::empty_body>& request,
                                            const Page& page) {
  http::response<http::string_body> response(http::status::ok, request.version());
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  const auto path = request.target().substr(0, request.target().find('?'));
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  if (!reads) {
    response.result(http::status::method_not_allowed);
    response.set(http::field::allow, "GET, HEAD");
    response.body() = "GET /metrics\n";
  } else if (path != "/metrics") {
    response.result(http::status::not_found);
    response.body() = "metrics are at /metrics\n";
  } else {
    // [Prometheus, "Exposition formats", text format 0.0.4]
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response.body() = page.get();
  }
  response.keep_alive(false);
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();
  return response;
}

/// One connection: a request, its answer, the end.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const Page& page) : stream_(std::move(socket)), page_(page) {
    parser_.header_limit(kLargestRequest);
  }

  void start() {
    stream_.expires_after(kPatience);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (!error) self->answer();
                            });
  }

 private:
  void answer() {
    response_ = answer_to(parser_.get(), page_);
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](error_code, std::size_t) { self->end(); });
  }
  void end() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  beast::tcp_stream stream_;
  const Page& page_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
};

}  // namespace

class MetricsServer::Server {
 public:
  explicit Server(std::uint16_t port) : acceptor_(context_) {
    const tcp::endpoint endpoint(tcp::v4(), port);
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) close_on_exec(acceptor_.native_handle());
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw std::runtime_error(
          fmt::format("cannot serve metrics at port {}: {}; --metrics takes "
                      "another port, 0 is any free one",
                      port, error.message()));
    accept();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Server() {
    context_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  Page page;

 private:
  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!error) {
        close_on_exec(socket.native_handle());
        std::make_shared<Session>(std::move(socket), page)->start();
      }
      if (error != asio::error::operation_aborted) accept();
    });
  }

  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  std::thread thread_;
};

MetricsServer::MetricsServer(std::uint16_t port) : server_(std::make_unique<Server>(port)) {}
MetricsServer::~MetricsServer() = default;
std::uint16_t MetricsServer::port() const { return server_->port(); }
void MetricsServer::publish(std::string page) { server_->page.set(std::move(page)); }

}  // namespace reckon
