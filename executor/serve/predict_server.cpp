#include "executor/serve/predict_server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <future>
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
constexpr std::uint64_t kLargestBody = 64 << 20;
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kMetrics = "text/plain; version=0.0.4; charset=utf-8";

/// Whether answers may still be handed to the connections' thread. Requests outlive the server in
/// the batcher's queue: behind a closed gate their answers go nowhere.
struct Gate {
  std::mutex mutex;
  bool open = true;
};

/// What all connections share.
struct Shared {
  PredictServer::Options options;
  Batcher& batcher;
  ServingMetrics& metrics;
  std::atomic<bool> ending{false}, draining{false};
  std::mutex mutex;
  std::condition_variable none_waits;
  int waiting = 0;  // requests that have no answer yet; guarded by mutex
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  /// Connections that the batcher answers; it does not own them. Of the connections' thread alone.
  std::set<std::shared_ptr<void>> asked;

  void begin_request() {
    const std::lock_guard lock(mutex);
    ++waiting;
  }
  void end_request() {
    const std::lock_guard lock(mutex);
    if (--waiting == 0) none_waits.notify_all();
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

/// One connection: request, answer, request, ...
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {}

  void read() {
    parser_.emplace();
    parser_->body_limit(kLargestBody);
    stream_.expires_after(kPatience);
    http::async_read(
        stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
          if (!error) return self->answer();
          if (error == http::error::body_limit)
            self->reply(refusal(http::status::payload_too_large, "the body is larger than 64 MiB"));
        });
  }

 private:
  void answer();
  void predict(const Target& target);
  void reply(Reply reply);
  void write(Reply reply);

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  Clock::time_point came_{};
  bool counted_ = false;
};

void Session::answer() {
  const auto& request = parser_->get();
  const std::string target(request.target());
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  if (reads && path == "/healthz")
    return shared_.ending ? reply({http::status::service_unavailable, "ending\n", kText})
                          : reply({http::status::ok, "ok\n", kText});
  if (reads && path == "/metrics")
    return reply({http::status::ok, shared_.metrics.page(), kMetrics});
  const auto asked = parse_target(path, shared_.options.name);
  if (!asked)
    return reply(refusal(http::status::not_found,
                         fmt::format("nothing is at {}; predictions are at /v1/models/{}:predict",
                                     path, shared_.options.name)));
  if (asked->status && reads)
    return reply(
        {http::status::ok, status_text(shared_.batcher.model()->version(), shared_.ending)});
  if (asked->predict && request.method() == http::verb::post) return predict(*asked);
  reply(refusal(http::status::method_not_allowed,
                asked->predict ? "predictions are asked for with POST" : "GET it"));
}

void Session::predict(const Target& target) {
  came_ = Clock::now();
  counted_ = true;
  shared_.begin_request();
  const std::shared_ptr<ServedModel> model = shared_.batcher.model();
  if (target.version && *target.version != model->version())
    return reply(refusal(http::status::not_found, fmt::format("version {} is not served, {} is",
                                                              *target.version, model->version())));
  auto instances = parse_instances(parser_->get().body());
  if (!instances) return reply(refusal(http::status::bad_request, instances.error()));
  const int most = shared_.batcher.rules().max;
  if (instances->size() > std::size_t(most))
    return reply(refusal(
        http::status::bad_request,
        fmt::format("{} instances at once, at most {} (--batch-max)", instances->size(), most)));
  for (const auto& instance : *instances)
    if (const auto reason = model->refuse(instance))
      return reply(refusal(http::status::bad_request, *reason));
  // The answer is written by the connections' thread.
  auto done = [weak = weak_from_this(), gate = shared_.gate](PredictResult result) {
    const std::lock_guard lock(gate->mutex);
    auto self = gate->open ? weak.lock() : nullptr;
    if (!self) return;
    const auto executor = self->stream_.get_executor();
    asio::post(executor, [self = std::move(self), result = std::move(result)] {
      if (const auto* error = std::get_if<PredictError>(&result))
        return self->reply(refusal(
            error->of_client ? http::status::bad_request : http::status::internal_server_error,
            error->what));
      self->reply({http::status::ok, predictions_text(std::get<Predictions>(result).answers)});
    });
  };
  shared_.asked.insert(shared_from_this());
  if (!shared_.batcher.submit(std::move(*instances), std::move(done)))
    reply(refusal(http::status::service_unavailable, "the queue is full"));
}

void Session::reply(Reply reply) {
  const auto self = shared_from_this();  // it may be owned by `asked` alone
  shared_.asked.erase(self);
  if (counted_)
    shared_.metrics.add_request(static_cast<unsigned>(reply.status), Clock::now() - came_);
  write(std::move(reply));
}

void Session::write(Reply reply) {
  const auto& request = parser_->get();
  response_ = http::response<http::string_body>(reply.status, request.version());
  response_.set(http::field::content_type,
                beast::string_view(reply.type.data(), reply.type.size()));
  response_.keep_alive(request.keep_alive() && !shared_.draining &&
                       reply.status != http::status::payload_too_large);
  response_.body() = std::move(reply.body);
  response_.prepare_payload();
  if (request.method() == http::verb::head) response_.body().clear();
  stream_.expires_after(kPatience);
  http::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
    if (std::exchange(self->counted_, false)) self->shared_.end_request();
    if (!error && self->response_.keep_alive()) return self->read();
    error_code ignored;
    self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  });
}

}  // namespace

class PredictServer::Server {
 public:
  Server(PredictServer::Options options, Batcher& batcher, ServingMetrics& metrics)
      : shared_{.options = std::move(options), .batcher = batcher, .metrics = metrics},
        acceptor_(context_) {
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
    shared_.asked.clear();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  void begin_to_end() { shared_.ending = true; }
  void drain(std::chrono::seconds patience) {
    shared_.ending = shared_.draining = true;
    std::promise<void> closed;
    asio::post(context_, [&] {
      error_code ignored;
      acceptor_.close(ignored);
      closed.set_value();
    });
    closed.get_future().wait();
    std::unique_lock lock(shared_.mutex);
    shared_.none_waits.wait_for(lock, patience, [this] { return shared_.waiting == 0; });
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
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!error) {
        error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        std::make_shared<Session>(std::move(socket), shared_)->read();
      }
      if (acceptor_.is_open()) accept();
    });
  }

  Shared shared_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

PredictServer::PredictServer(Options options, Batcher& batcher, ServingMetrics& metrics)
    : server_(std::make_unique<Server>(std::move(options), batcher, metrics)) {}
PredictServer::~PredictServer() = default;
std::uint16_t PredictServer::port() const { return server_->port(); }
void PredictServer::begin_to_end() { server_->begin_to_end(); }
void PredictServer::drain(std::chrono::seconds patience) { server_->drain(patience); }

}  // namespace reckon
