#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/http/listen_address.h"

namespace reckon {

struct HttpRequest {
  std::string method, path, body;  // "GET"; the path without what follows '?'
  std::chrono::steady_clock::time_point first_byte, complete;
};

struct HttpReply {
  unsigned status = 200;
  std::string body;
  std::string_view type = "text/plain; charset=utf-8";
  std::string_view allow = {};         // of 405: the methods that the path takes
  std::function<void()> written = {};  // called once the system has the last byte
};

/// Answers a request, once, with what `make` returns; from any thread, also when the server is no
/// more. `make` is called by the server's thread, while the server is there.
using HttpAnswerLater = std::function<void(std::function<HttpReply()> make)>;
/// The answer; nullopt: it comes later. Called by the server's thread: it must not wait.
using HttpHandler = std::function<std::optional<HttpReply>(HttpRequest, HttpAnswerLater)>;

struct HttpOptions {
  ListenAddress listen = {};
  /// What a request has to show as a bearer token, else it is answered with 401; empty: nothing.
  std::string token = {};
  /// Paths that need no token: probes of health, which say no more than that the server lives.
  std::vector<std::string> open_paths = {};
  /// A GET may also show the token as `?token=`: the link by which a browser opens a page.
  bool token_in_link = false;
  /// Only requests for this address or for `localhost`, with its port, are answered, others with
  /// 403: no page of others reaches this server by a name that leads here (DNS rebinding).
  bool own_host_only = false;
  /// Fields of every answer.
  std::vector<std::pair<std::string, std::string>> fields = {};
  /// At once; no more than half of the descriptors that the process may have (most_connections()).
  std::size_t connections = 1024;
  /// The largest body that is taken, in bytes, asked for each request; none: no body.
  std::function<std::uint64_t()> largest_body = {};
  /// A refusal in the words of the service, such as of a body that is too large.
  std::function<HttpReply(unsigned status, std::string_view what)> refusal = {};
  // A connection is closed where a request takes longer: its header from the first byte on, its
  // body behind that, the answer; or where it says nothing between two requests.
  std::chrono::milliseconds header_patience{10'000}, body_patience{60'000}, idle_patience{60'000};
};

/// HTTP/1.1 from a thread of its own. Its clients are not trusted: headers and bodies are bounded
/// in size and time; where there are as many connections as may be, or the process has no
/// descriptor left, the connection that has been silent longest gives way, and where all await an
/// answer the others wait in the listener's queue. Whoever sends requests one behind the other
/// (pipelining) is answered in their order.
class HttpServer {
 public:
  /// Listens. Throws std::runtime_error, which says the address, where it may not.
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  ListenAddress address() const;  // with the port that was found
  /// From now on each answer says that it is the last one of its connection. Who connects is
  /// answered as before.
  void begin_to_end();
  bool ending() const;
  /// Answers whoever has connected, and closes the listener. A connection from which the first byte
  /// of a request has come is owed an answer; one that stays silent for a second more is closed.
  /// Returns when no connection is left, or after `patience`.
  void drain(std::chrono::seconds patience);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

/// min(`wanted`, half of the descriptors that this process may have), at least 1.
std::size_t most_connections(std::size_t wanted);

}  // namespace reckon
