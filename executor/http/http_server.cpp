#include "executor/http/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <stdexcept>
#include <thread>
#include <utility>

#include "executor/http/http_session.h"

namespace reckon {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;
using http::Session;

constexpr std::chrono::seconds kLastCall{1};        // at the end, for a request that is on its way
constexpr std::chrono::milliseconds kBackOff{100};  // when no connection can be accepted

bool lacks_room(const error_code& error) {
  using namespace boost::system::errc;
  return error == too_many_files_open || error == too_many_files_open_in_system ||
         error == no_buffer_space || error == not_enough_memory;
}

/// The processes that this one starts must not hold our sockets open.
void close_on_exec(int descriptor) { ::fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

}  // namespace

std::size_t most_connections(std::size_t wanted) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return wanted;
  return std::clamp<std::size_t>(files.rlim_cur / 2, 1, std::max<std::size_t>(wanted, 1));
}

class HttpServer::Server {
 public:
  Server(HttpOptions options, HttpHandler handler)
      : shared_{.options = std::move(options), .handler = std::move(handler)},
        most_(most_connections(shared_.options.connections)),
        acceptor_(context_),
        timer_(context_) {
    shared_.on_change = [this] { changed(); };
    listen();
    address_ = {shared_.options.listen.host, acceptor_.local_endpoint().port()};
    shared_.port = address_.port;
    accept();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Server() {
    {
      const std::lock_guard lock(shared_.gate->mutex);
      shared_.gate->open = false;
    }
    context_.stop();
    thread_.join();
    shared_.on_change = [] {};
    shared_.sessions.clear();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  ListenAddress address() const { return address_; }
  bool ending() const { return shared_.ending; }
  void begin_to_end() { shared_.ending = true; }
  void drain(std::chrono::seconds patience) {
    shared_.ending = true;
    asio::post(context_, [this] { close_listener(); });
    std::unique_lock lock(mutex_);
    nobody_left_.wait_for(lock, patience, [this] { return nobody_; });
  }

 private:
  void listen() {
    const ListenAddress& where = shared_.options.listen;
    error_code error;
    const tcp::endpoint endpoint(asio::ip::make_address(where.host, error), where.port);
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) close_on_exec(acceptor_.native_handle());
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw std::runtime_error(fmt::format(
          "cannot listen at {}: {}; give another address or port (port 0: any free one)",
          text(where), error.message()));
  }

  void accept() {
    accepting_ = true;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      accepting_ = false;
      if (!error) begin(std::move(socket));
      if (!acceptor_.is_open()) return check_end();
      if (error) return accept_later(lacks_room(error));
      changed();
    });
  }
  /// The process may have no descriptor left. Asked at once again, it would ask for ever; what may
  /// give way does, the rest waits in the listener's queue.
  void accept_later(bool make_room) {
    if (make_room) give_way();
    timer_.expires_after(kBackOff);
    timer_.async_wait([this](error_code error) {
      if (!error) changed();
    });
  }
  void begin(tcp::socket socket) {
    close_on_exec(socket.native_handle());
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    while (shared_.sessions.size() >= most_ && give_way()) {
    }
    auto session = std::make_shared<Session>(std::move(socket), shared_);
    shared_.sessions.insert(session);
    session->start();
  }

  /// The one that has been silent longest; null: all await an answer.
  std::shared_ptr<Session> most_silent() const {
    const auto at = std::ranges::min_element(shared_.sessions, {}, [](const auto& session) {
      return std::pair(session->state(), session->since());
    });
    if (at == shared_.sessions.end() || (*at)->state() == Session::State::answered) return nullptr;
    return *at;
  }
  bool give_way() {
    const auto session = most_silent();
    if (session) session->close();
    return session != nullptr;
  }

  void changed() {
    if (!acceptor_.is_open()) return check_end();
    const bool waits = timer_.expiry() > http::Clock::now();  // accept_later()
    if (accepting_ || waits) return;
    if (shared_.sessions.size() < most_ || most_silent()) accept();
  }

  /// Whoever has connected is answered, and whoever is silent has a moment to say something.
  void close_listener() {
    if (!acceptor_.is_open()) return;
    error_code error;
    acceptor_.non_blocking(true, error);
    while (!error) {
      tcp::socket socket(context_);
      acceptor_.accept(socket, error);
      if (!error) begin(std::move(socket));
    }
    acceptor_.close(error);
    timer_.expires_after(kLastCall);
    timer_.async_wait([this](error_code stopped) {
      if (stopped) return;
      const auto open = shared_.sessions;
      for (const auto& session : open) session->close_if_idle();
    });
    check_end();
  }
  void check_end() {
    const auto owed = [](const auto& session) { return session->owed(); };
    if (accepting_ || std::ranges::any_of(shared_.sessions, owed)) return;
    const std::lock_guard lock(mutex_);
    nobody_ = true;
    nobody_left_.notify_all();
  }

  http::Shared shared_;
  const std::size_t most_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;  // of the next attempt to accept; when it ends, of the last call
  bool accepting_ = false;
  ListenAddress address_;
  std::mutex mutex_;
  std::condition_variable nobody_left_;
  bool nobody_ = false;  // the listener is closed and all connections are; guarded by mutex_
  std::thread thread_;
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : server_(std::make_unique<Server>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
ListenAddress HttpServer::address() const { return server_->address(); }
void HttpServer::begin_to_end() { server_->begin_to_end(); }
bool HttpServer::ending() const { return server_->ending(); }
void HttpServer::drain(std::chrono::seconds patience) { server_->drain(patience); }

}  // namespace reckon
