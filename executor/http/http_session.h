#pragma once
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "executor/http/http_server.h"

// One connection of an HttpServer; Boost.Beast stays behind this header.
namespace reckon::http {

using Clock = std::chrono::steady_clock;
class Session;

/// Whether answers may still be handed to the connections' thread. Requests outlive the server in
/// the queue of whoever answers: behind a closed gate their answers go nowhere.
struct Gate {
  std::mutex mutex;
  bool open = true;
};

/// What all connections share; but for `ending` and the gate, of the server's thread alone.
struct Shared {
  HttpOptions options;
  HttpHandler handler;
  std::uint16_t port = 0;  // that was found
  std::atomic<bool> ending{false};
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  std::set<std::shared_ptr<Session>> sessions;  // those whose socket is open
  std::function<void()> on_change;              // one is no longer, or is owed nothing any more
};

/// Request, answer, request, ... From the first byte of a request to the last one of its answer the
/// connection is owed something.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// In the order in which they give way to others; who awaits an answer never does.
  enum class State { leaving, silent, body, writing, answered };

  Session(boost::asio::ip::tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)), shared_(shared) {}

  void start() { read(); }
  State state() const { return state_; }
  Clock::time_point since() const { return since_; }
  /// The server waits for it before it ends.
  bool owed() const { return state_ != State::leaving; }
  /// Closes at once, whatever was going on.
  void close();
  /// Nothing of a request has come: it ends. What has arrived unread is a request.
  void close_if_idle();

 private:
  void enter(State state);
  void read();
  void read_header();
  void read_body();
  bool may_ask() const;
  bool is_for_this_host() const;
  void answer();
  void refuse(unsigned status, std::string_view what);
  void reply(HttpReply reply);
  void finish();
  void hang_up();
  void discard();

  boost::beast::tcp_stream stream_;
  Shared& shared_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
  std::function<void()> written_;
  State state_ = State::silent;
  Clock::time_point since_ = Clock::now(), first_byte_{};
  bool begun_ = false;  // a byte of a request has come
};

}  // namespace reckon::http
