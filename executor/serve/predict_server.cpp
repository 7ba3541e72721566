#include "executor/serve/predict_server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "executor/serve/predict_body.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};  // with a silent client
constexpr std::chrono::seconds kLastCall{1};   // at the end, for a request that is on its way
constexpr std::chrono::seconds kLinger{5};     // for the client of a closed connection to hang up
constexpr std::chrono::milliseconds kBackOff{100};  // when no connection can be accepted
constexpr std::size_t kMostConnections = 1024;      // others wait in the listener's queue
constexpr std::uint64_t kLeastBody = 64 << 10, kLargestBody = 64 << 20;
constexpr std::uint64_t kBytesPerNumber = 32;  // of JSON: 17 digits, sign, exponent, spaces
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kMetrics = "text/plain; version=0.0.4; charset=utf-8";

/// Whether answers may still be handed to the connections' thread. Requests outlive the server in
/// the batcher's queue: behind a closed gate their answers go nowhere.
struct Gate {
  std::mutex mutex;
  bool open = true;
};

class Session;

/// What all connections share.
struct Shared {
  PredictServer::Options options;
  Batcher& batcher;
  ServingMetrics& metrics;
  std::atomic<bool> ending{false};
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  /// Those that are open; of the connections' thread alone.
  std::set<std::shared_ptr<Session>> sessions;
  std::function<void()> on_closed;  // called when one is no longer

  /// A full batch in generous JSON: of anything larger no byte is kept.
  std::uint64_t largest_body() const {
    const auto model = batcher.model();
    if (!model) return kLeastBody;
    const auto numbers = model->input_size() * std::uint64_t(batcher.rules().max);
    return std::clamp(numbers * kBytesPerNumber, kLeastBody, kLargestBody);
  }
};

struct Reply {
  http::status status = http::status::ok;
  std::string body;
  std::string_view type = kJson;
};

Reply refusal(http::status status, std::string_view what) { return {status, error_text(what)}; }

/// What the path of a request to predict asks for.
struct Target {
  bool predict = false, status = false;
  std::optional<std::int64_t> version;
};

/// nullopt: no path of this model.
std::optional<Target> parse_target(std::string_view path, const std::string& name) {
  const std::string model = "/v1/models/" + name;
  if (!path.starts_with(model)) return std::nullopt;
  path.remove_prefix(model.size());
  Target target;
  constexpr std::string_view kVersions = "/versions/", kPredict = ":predict";
  if (path.ends_with(kPredict)) {
    target.predict = true;
    path.remove_suffix(kPredict.size());
  } else {
    target.status = true;
  }
  if (path.starts_with(kVersions)) {
    const auto version = parse_integer(path.substr(kVersions.size()));
    if (!version) return std::nullopt;
    target.version = *version;
    path = {};
  }
  return path.empty() ? std::optional(target) : std::nullopt;
}

/// One connection: request, answer, request, ... From the first byte of a request to the last one
/// of its answer it is busy.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {}

  void read();
  /// Nobody is owed an answer here: it ends. What has arrived unread is a request.
  void close_if_idle() {
    error_code error;
    if (busy_ || stream_.socket().available(error) > 0) return;
    stream_.cancel();
  }

 private:
  void read_rest();
  void answer();
  Reply health() const;
  void predict(const Target& target, const ServedModel& model);
  void reply(Reply reply);
  void write(Reply reply);
  void finish();
  void hang_up();
  void discard();

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  Clock::time_point came_{};
  Clock::time_point first_byte_{}, result_at_{};
  Clock::duration before_queue_{};
  bool predicted_ = false;  // the answer that is written is of a pass
  bool busy_ = false, counted_ = false;
};

void Session::read() {
  constexpr std::size_t kPart = 16 << 10;
  if (buffer_.size() > 0) return read_rest();  // the next request came with the last one
  busy_ = false;
  stream_.expires_after(kPatience);
  stream_.async_read_some(buffer_.prepare(kPart),
                          [self = shared_from_this()](error_code error, std::size_t n) {
                            if (error) return self->finish();
                            self->buffer_.commit(n);
                            self->read_rest();
                          });
}

void Session::read_rest() {
  busy_ = true;
  first_byte_ = Clock::now();
  const std::uint64_t most = shared_.largest_body();
  parser_.emplace();
  parser_->body_limit(most);
  stream_.expires_after(kPatience);
  http::async_read(
      stream_, buffer_, *parser_, [self = shared_from_this(), most](error_code error, std::size_t) {
        if (!error) return self->answer();
        if (error != http::error::body_limit) return self->finish();
        self->reply(refusal(
            http::status::payload_too_large,
            fmt::format("the body is larger than {} KiB, room for a full batch", most >> 10)));
      });
}

/// The server no longer waits for this connection.
void Session::finish() {
  if (shared_.sessions.erase(shared_from_this()) > 0) shared_.on_closed();
}

/// Behind the last answer. Closing at once while something unread is there would reset the
/// connection, and the client might lose the answer.
void Session::hang_up() {
  finish();
  error_code error;
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  stream_.expires_after(kLinger);
  if (!error) discard();
}

void Session::discard() {
  constexpr std::size_t kPart = 16 << 10;
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kPart),
                          [self = shared_from_this()](error_code error, std::size_t) {
                            if (!error) self->discard();
                          });
}

void Session::answer() {
  const auto& request = parser_->get();
  const std::string target(request.target());
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  if (reads && path == "/healthz") return reply(health());
  if (reads && path == "/livez") return reply({http::status::ok, "ok\n", kText});
  if (reads && path == "/metrics")
    return reply({http::status::ok, shared_.metrics.page(), kMetrics});
  const std::shared_ptr<ServedModel> model = shared_.batcher.model();
  if (!model)
    return reply(refusal(http::status::service_unavailable, "no version has been loaded yet"));
  if (shared_.options.name.empty()) shared_.options.name = model->name();
  const auto asked = parse_target(path, shared_.options.name);
  if (!asked)
    return reply(refusal(http::status::not_found,
                         fmt::format("nothing is at {}; predictions are at /v1/models/{}:predict",
                                     path, shared_.options.name)));
  if (asked->status && reads)
    return reply({http::status::ok, status_text(model->version(), shared_.ending)});
  if (asked->predict && request.method() == http::verb::post) return predict(*asked, *model);
  reply(refusal(http::status::method_not_allowed,
                asked->predict ? "predictions are asked for with POST" : "GET it"));
}

Reply Session::health() const {
  const auto unwell = [](const char* why) {
    return Reply{http::status::service_unavailable, why, kText};
  };
  if (shared_.ending) return unwell("ending\n");
  if (!shared_.batcher.model()) return unwell("no version has been loaded yet\n");
  return {http::status::ok, "ok\n", kText};
}

void Session::predict(const Target& target, const ServedModel& model) {
  came_ = Clock::now();
  counted_ = true;
  if (target.version && *target.version != model.version())
    return reply(refusal(http::status::not_found, fmt::format("version {} is not served, {} is",
                                                              *target.version, model.version())));
  const auto most = std::size_t(shared_.batcher.rules().max);
  auto instances = parse_instances(parser_->get().body(), most);
  if (!instances) return reply(refusal(http::status::bad_request, instances.error()));
  for (const auto& instance : *instances)
    if (const auto reason = model.refuse(instance))
      return reply(refusal(http::status::bad_request, *reason));
  // The answer is written by the connections' thread.
  auto done = [weak = weak_from_this(), gate = shared_.gate](PredictResult result) {
    const auto result_at = Clock::now();
    const std::lock_guard lock(gate->mutex);
    auto self = gate->open ? weak.lock() : nullptr;
    if (!self) return;
    const auto executor = self->stream_.get_executor();
    asio::post(executor, [self = std::move(self), result = std::move(result), result_at] {
      if (const auto* error = std::get_if<PredictError>(&result))
        return self->reply(refusal(
            error->of_client ? http::status::bad_request : http::status::internal_server_error,
            error->what));
      self->result_at_ = result_at;
      self->predicted_ = true;
      self->reply({http::status::ok, predictions_text(std::get<Predictions>(result).answers)});
    });
  };
  before_queue_ = Clock::now() - first_byte_;
  if (!shared_.batcher.submit(std::move(*instances), std::move(done)))
    reply(refusal(http::status::service_unavailable, "the queue is full"));
}

void Session::reply(Reply reply) {
  if (std::exchange(counted_, false))
    shared_.metrics.add_request(static_cast<unsigned>(reply.status), Clock::now() - came_);
  write(std::move(reply));
}

void Session::write(Reply reply) {
  const auto& request = parser_->get();
  response_ = http::response<http::string_body>(reply.status, request.version());
  response_.set(http::field::content_type,
                beast::string_view(reply.type.data(), reply.type.size()));
  response_.keep_alive(request.keep_alive() && !shared_.ending &&
                       reply.status != http::status::payload_too_large);
  response_.body() = std::move(reply.body);
  response_.prepare_payload();
  if (request.method() == http::verb::head) response_.body().clear();
  stream_.expires_after(kPatience);
  http::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->finish();
    if (std::exchange(self->predicted_, false))
      self->shared_.metrics.add_outside(self->before_queue_ + (Clock::now() - self->result_at_));
    if (self->response_.keep_alive()) return self->read();
    self->hang_up();
  });
}

}  // namespace

class PredictServer::Server {
 public:
  Server(PredictServer::Options options, Batcher& batcher, ServingMetrics& metrics)
      : shared_{.options = std::move(options), .batcher = batcher, .metrics = metrics},
        acceptor_(context_),
        timer_(context_) {
    shared_.on_closed = [this] { closed(); };
    listen();
    port_ = acceptor_.local_endpoint().port();
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
    shared_.sessions.clear();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  void begin_to_end() { shared_.ending = true; }
  void drain(std::chrono::seconds patience) {
    shared_.ending = true;
    asio::post(context_, [this] { close_listener(); });
    std::unique_lock lock(mutex_);
    nobody_left_.wait_for(lock, patience, [this] { return nobody_; });
  }

 private:
  void listen() {
    const asio::ip::address_v4 address = shared_.options.only_loopback
                                             ? asio::ip::address_v4::loopback()
                                             : asio::ip::address_v4::any();
    const tcp::endpoint endpoint(address, shared_.options.port);
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw std::runtime_error(
          fmt::format("cannot serve at port {}: {}; --port takes another one, 0 is any free one",
                      shared_.options.port, error.message()));
  }
  void accept() {
    accepting_ = true;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      accepting_ = false;
      if (!error) begin(std::move(socket));
      if (!acceptor_.is_open()) return check_end();
      if (error) return accept_later();
      if (shared_.sessions.size() < kMostConnections) accept();
    });
  }
  /// The process may have no descriptor left: asked at once again, it would ask for ever.
  void accept_later() {
    timer_.expires_after(kBackOff);
    timer_.async_wait([this](error_code error) {
      if (!error && acceptor_.is_open() && !accepting_) accept();
    });
  }
  void begin(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    auto session = std::make_shared<Session>(std::move(socket), shared_);
    shared_.sessions.insert(session);
    session->read();
  }
  void closed() {
    if (!acceptor_.is_open()) return check_end();
    if (!accepting_ && shared_.sessions.size() < kMostConnections) accept();
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
    if (accepting_ || !shared_.sessions.empty()) return;
    const std::lock_guard lock(mutex_);
    nobody_ = true;
    nobody_left_.notify_all();
  }

  Shared shared_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;  // of the next attempt to accept; when it ends, of the last call
  bool accepting_ = false;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable nobody_left_;
  bool nobody_ = false;  // the listener is closed and all connections are; guarded by mutex_
  std::thread thread_;
};

PredictServer::PredictServer(Options options, Batcher& batcher, ServingMetrics& metrics)
    : server_(std::make_unique<Server>(std::move(options), batcher, metrics)) {}
PredictServer::~PredictServer() = default;
std::uint16_t PredictServer::port() const { return server_->port(); }
void PredictServer::begin_to_end() { server_->begin_to_end(); }
void PredictServer::drain(std::chrono::seconds patience) { server_->drain(patience); }

}  // namespace reckon
