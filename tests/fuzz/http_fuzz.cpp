#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "executor/http/http_session.h"
#include "executor/serve/predict_body.h"

// One connection to a server of HTTP: whatever a client says, each answer is a whole one, an answer
// of 200 was asked for, and of a body no byte is taken that may not be. No network: the two ends of
// a pair of sockets. The first byte says whether a token is asked for.
namespace {

using namespace reckon;
namespace asio = boost::asio;
namespace wire = boost::beast::http;

constexpr std::uint64_t kLargestBody = 4096;
constexpr std::size_t kMostInstances = 4;

void require(bool condition) {
  if (!condition) std::abort();
}

HttpReply refusal(unsigned status, std::string_view what) {
  return {.status = status, .body = error_text(what), .type = "application/json"};
}

/// What a server of predictions does with a body, and one of metrics with a path.
std::optional<HttpReply> handle(HttpRequest request, const HttpAnswerLater&) {
  require(request.path.find('?') == std::string::npos);
  require(request.body.size() <= kLargestBody);
  if (request.method != "POST") return HttpReply{.body = request.path};
  const auto instances = parse_instances(request.body, kMostInstances);
  if (!instances) return refusal(400, instances.error());
  require(!instances->empty() && instances->size() <= kMostInstances);
  return HttpReply{.body = predictions_text(*instances), .type = "application/json"};
}

/// All that the server says to `bytes`.
std::string answers_to(std::string_view bytes, const std::string& token) {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  std::string said;
  {
    asio::io_context context{1};
    http::Shared shared;
    shared.options = {.token = token,
                      .open_paths = {"/healthz"},
                      .largest_body = [] { return kLargestBody; },
                      .refusal = refusal};
    shared.handler = handle;
    shared.on_change = [] {};
    auto session = std::make_shared<http::Session>(
        asio::ip::tcp::socket(context, asio::ip::tcp::v4(), ends[0]), shared);
    shared.sessions.insert(session);
    session->start();
    session.reset();
    (void)!::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(ends[1], SHUT_WR);
    std::array<char, 65536> part{};
    while (!context.stopped()) {
      context.run_one_for(std::chrono::milliseconds(100));
      for (ssize_t n = 0; (n = ::recv(ends[1], part.data(), part.size(), MSG_DONTWAIT)) > 0;)
        said.append(part.data(), std::size_t(n));
    }
    shared.sessions.clear();
  }
  ::close(ends[1]);
  return said;
}

void check(const wire::response<wire::string_body>& answer) {
  const unsigned status = answer.result_int();
  require(status == 200 || status == 400 || status == 401 || status == 413);
  if (status == 401) require(answer.count(wire::field::www_authenticate) == 1);
  if (answer[wire::field::content_type] == "application/json")
    require(nlohmann::json::accept(answer.body()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string said = answers_to(bytes, data[0] == 't' ? "secret-token" : "");
  // An answer to HEAD has no body, although it says how long it would be.
  if (bytes.find("HEAD") != std::string_view::npos) return 0;
  for (std::size_t at = 0; at < said.size();) {
    wire::response_parser<wire::string_body> parser;
    parser.eager(true);
    boost::system::error_code error;
    at += parser.put(asio::buffer(said.data() + at, said.size() - at), error);
    require(!error && parser.is_done());
    check(parser.get());
  }
  return 0;
}
