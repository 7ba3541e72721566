#include "executor/http/http_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "executor/http/bearer_token.h"

namespace reckon::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kPart = 16 << 10;             // of what is read at once
constexpr std::uint32_t kLargestHeader = 16 << 10;  // all its lines
constexpr std::chrono::seconds kLinger{5};          // for the client of a closed connection
constexpr unsigned kUnauthorized = 401, kForbidden = 403, kTooLarge = 413;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }
beast::string_view view(std::string_view text) { return {text.data(), text.size()}; }

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

void Session::enter(State state) {
  state_ = state;
  since_ = Clock::now();
  if (state != State::answered) shared_.on_change();
}

void Session::read() {
  begun_ = false;
  enter(State::silent);
  if (buffer_.size() > 0) return read_header();  // the next request came with the last one
  stream_.expires_after(shared_.options.idle_patience);
  stream_.async_read_some(buffer_.prepare(kPart),
                          [self = shared_from_this()](error_code error, std::size_t n) {
                            if (error) return self->finish();
                            self->buffer_.commit(n);
                            self->read_header();
                          });
}

void Session::read_header() {
  begun_ = true;
  first_byte_ = since_ = Clock::now();
  const auto& largest = shared_.options.largest_body;
  const std::uint64_t most = largest ? largest() : 0;
  parser_.emplace();
  parser_->header_limit(kLargestHeader);
  parser_->body_limit(most);
  stream_.expires_after(shared_.options.header_patience);
  wire::async_read_header(
      stream_, buffer_, *parser_, [self = shared_from_this(), most](error_code error, std::size_t) {
        if (!error) return self->read_body();
        if (error != wire::error::body_limit) return self->finish();
        self->refuse(kTooLarge, fmt::format("the body is larger than {} KiB", most >> 10));
      });
}

bool Session::may_ask() const {
  const HttpOptions& options = shared_.options;
  const auto& head = parser_->get();
  const std::string_view target = view(head.target()), path = path_of(target);
  if (options.token.empty() || std::ranges::count(options.open_paths, path) > 0) return true;
  if (shows_token(view(head[wire::field::authorization]), options.token)) return true;
  return options.token_in_link && head.method() == wire::verb::get && path.size() < target.size() &&
         query_shows_token(target.substr(path.size() + 1), options.token);
}

bool Session::is_for_this_host() const {
  const std::string_view host = view(parser_->get()[wire::field::host]);
  return host == text(ListenAddress{shared_.options.listen.host, shared_.port}) ||
         host == text(ListenAddress{"localhost", shared_.port});
}

/// Of whoever may not ask no body is read.
void Session::read_body() {
  const HttpOptions& options = shared_.options;
  if (options.own_host_only && !is_for_this_host())
    return refuse(kForbidden, "this server answers at its own address only");
  if (!may_ask())
    return refuse(kUnauthorized, options.token_in_link
                                     ? "this server asks for the token of its link: ?token=TOKEN"
                                     : "this server asks for a token: Authorization: Bearer TOKEN");
  if (parser_->is_done()) return answer();
  enter(State::body);
  const std::uint64_t most = options.largest_body ? options.largest_body() : 0;
  stream_.expires_after(options.body_patience);
  wire::async_read(
      stream_, buffer_, *parser_, [self = shared_from_this(), most](error_code error, std::size_t) {
        if (!error) return self->answer();
        if (error != wire::error::body_limit) return self->finish();
        self->refuse(kTooLarge, fmt::format("the body is larger than {} KiB", most >> 10));
      });
}

void Session::answer() {
  enter(State::answered);
  stream_.expires_never();
  auto& asked = parser_->get();
  HttpRequest request{.method = std::string(view(asked.method_string())),
                      .path = std::string(path_of(view(asked.target()))),
                      .body = std::move(asked.body()),
                      .first_byte = first_byte_,
                      .complete = Clock::now()};
  auto later = [weak = weak_from_this(), gate = shared_.gate](std::function<HttpReply()> make) {
    const std::lock_guard lock(gate->mutex);
    auto self = gate->open ? weak.lock() : nullptr;
    if (!self) return;
    const auto executor = self->stream_.get_executor();
    asio::post(executor, [self = std::move(self), make = std::move(make)] { self->reply(make()); });
  };
  if (auto now = shared_.handler(std::move(request), std::move(later))) reply(std::move(*now));
}

void Session::refuse(unsigned status, std::string_view what) {
  reply(shared_.options.refusal ? shared_.options.refusal(status, what)
                                : HttpReply{.status = status, .body = fmt::format("{}\n", what)});
}

void Session::reply(HttpReply reply) {
  enter(State::writing);
  const auto& request = parser_->get();
  response_ = {static_cast<wire::status>(reply.status), request.version()};
  response_.set(wire::field::content_type, view(reply.type));
  for (const auto& [name, value] : shared_.options.fields) response_.set(name, value);
  if (!reply.allow.empty()) response_.set(wire::field::allow, view(reply.allow));
  if (reply.status == kUnauthorized)  // [RFC 9110, section 11.6.1]
    response_.set(wire::field::www_authenticate, "Bearer realm=\"reckon\"");
  // Behind a body that was not read nobody knows where the next request begins.
  response_.keep_alive(request.keep_alive() && !shared_.ending && parser_->is_done());
  response_.body() = std::move(reply.body);
  response_.prepare_payload();
  if (request.method() == wire::verb::head) response_.body().clear();
  written_ = std::move(reply.written);
  stream_.expires_after(shared_.options.body_patience);
  wire::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->finish();
    if (const auto written = std::exchange(self->written_, nullptr)) written();
    if (self->response_.keep_alive()) return self->read();
    self->hang_up();
  });
}

/// The server no longer knows this connection; its socket closes with the last handler.
void Session::finish() {
  if (shared_.sessions.erase(shared_from_this()) > 0) shared_.on_change();
}

/// Behind the last answer. Closing at once while something unread is there would reset the
/// connection, and the client might lose the answer.
void Session::hang_up() {
  enter(State::leaving);
  error_code error;
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  if (error) return finish();
  stream_.expires_after(kLinger);
  discard();
}

void Session::discard() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kPart),
                          [self = shared_from_this()](error_code error, std::size_t) {
                            error ? self->finish() : self->discard();
                          });
}

void Session::close() {
  stream_.close();
  finish();
}

void Session::close_if_idle() {
  error_code error;
  if (state_ != State::silent || begun_ || stream_.socket().available(error) > 0) return;
  close();
}

}  // namespace reckon::http
