#include "cli/explore/explore_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "cli/errors.h"
#include "cli/options/usage_error.h"
#include "executor/comm/crypto.h"
#include "report/html/explore_page.h"

namespace reckon::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestBody = 64 << 10;
constexpr std::size_t kThreads = 3;  // a search beside two forecasts
constexpr std::size_t kMostWaiting = 32, kMostConnections = 64;
constexpr std::string_view kJson = "application/json", kErrors = "application/x-ndjson";

std::string random_word() {
  std::array<std::byte, 32> bytes{};
  fill_randomly(bytes);
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", std::to_integer<int>(byte));
  return out;
}

struct PageQuestion {
  ExploreAnswers::Words words;
  std::optional<int> replications;
};

struct Endpoint {
  std::string_view name, type;
  std::string (*answer)(const ExploreAnswers& answers, const PageQuestion& asked);
};
constexpr std::array kEndpoints{
    Endpoint{"/simulate", kJson,
             [](const ExploreAnswers& a, const PageQuestion& q) {
               return a.simulate(q.words, q.replications);
             }},
    Endpoint{"/plan", kJson,
             [](const ExploreAnswers& a, const PageQuestion& q) { return a.plan(q.words); }},
    Endpoint{"/controls", kJson,
             [](const ExploreAnswers& a, const PageQuestion& q) { return a.controls(q.words); }},
    Endpoint{"/scenario", "text/plain; charset=utf-8",
             [](const ExploreAnswers& a, const PageQuestion& q) { return a.scenario(q.words); }}};

HttpReply refused(unsigned status, std::string_view what, std::string_view hint = "") {
  return {.status = status,
          .body = error_lines({{Severity::error, {}, std::string(what), std::string(hint)}},
                              status == 500 ? ErrorCode::environment : ErrorCode::usage),
          .type = kErrors};
}

/// Throws UsageError where that is no question.
PageQuestion read_question(const std::string& body) {
  constexpr int kMostReplications = 1'000'000;
  constexpr const char* kShape = R"(the body is an object such as {"set": ["a.b=c"]})";
  const json read = json::parse(body, nullptr, false);
  if (!read.is_object()) throw UsageError(kShape);
  PageQuestion asked;
  for (const auto& [key, value] : read.items()) {
    if (key == "replications" && value.is_null()) continue;
    if (key == "replications" && value.is_number_integer() && value >= 1 &&
        value <= kMostReplications)
      asked.replications = value.get<int>();
    else if (key == "set" && value.is_array() &&
             std::ranges::all_of(value, [](const json& word) { return word.is_string(); }))
      asked.words = value.get<ExploreAnswers::Words>();
    else
      throw UsageError(
          fmt::format("'{}' is not a key of a question, or its value is wrong; {}", key, kShape));
  }
  return asked;
}

HttpReply answer(const ExploreAnswers& answers, const Endpoint& path, const PageQuestion& asked) {
  constexpr unsigned kWrong = 422, kFailed = 500;
  const auto wrong = [](Diagnostics found, ErrorCode code) {
    return HttpReply{.status = kWrong, .body = error_lines(found, code), .type = kErrors};
  };
  try {
    return {.body = path.answer(answers, asked), .type = path.type};
  } catch (const WrongInput& e) {
    return wrong(e.diagnostics, ErrorCode::input);
  } catch (const UsageError& e) {
    return refused(kWrong, e.what());
  } catch (const TooMuchWork& e) {
    return wrong({mistake_of("reckon", e)}, ErrorCode::limit);
  } catch (const Overflow& e) {
    return wrong({mistake_of("reckon", e)}, ErrorCode::limit);
  } catch (const std::exception& e) {
    return refused(kFailed, e.what());
  }
}

/// Nothing from elsewhere, no frame around it, nobody told of its address.
std::vector<std::pair<std::string, std::string>> fields_with(const std::string& nonce) {
  return {{"Content-Security-Policy",
           fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
                       "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                       "frame-ancestors 'none'",
                       nonce)},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

}  // namespace

ExploreServer::ExploreServer(const ExploreAnswers& answers, std::uint16_t port,
                             int quick_replications)
    : answers_(answers),
      token_(random_word()),
      nonce_(random_word()),
      page_(explore_page(nonce_, quick_replications)),
      queue_(std::make_unique<AnswerQueue>(kThreads, kMostWaiting)) {
  HttpOptions options;
  options.listen = {"127.0.0.1", port};
  options.token = token_;
  options.token_in_link = true;
  options.own_host_only = true;
  options.fields = fields_with(nonce_);
  options.connections = kMostConnections;
  options.largest_body = [] { return kLargestBody; };
  options.refusal = [](unsigned status, std::string_view what) { return refused(status, what); };
  server_ = std::make_unique<HttpServer>(std::move(options),
                                         [this](HttpRequest request, HttpAnswerLater later) {
                                           return take(std::move(request), std::move(later));
                                         });
}

std::string ExploreServer::link() const {
  return fmt::format("http://{}/?token={}", text(server_->address()), token_);
}

std::optional<HttpReply> ExploreServer::take(HttpRequest request, HttpAnswerLater later) {
  if (request.path == "/") {
    if (request.method == "GET" || request.method == "HEAD")
      return HttpReply{.body = page_, .type = "text/html; charset=utf-8"};
    return HttpReply{.status = 405, .body = "GET /\n", .allow = "GET, HEAD"};
  }
  const auto path = std::ranges::find(kEndpoints, request.path, &Endpoint::name);
  if (path == kEndpoints.end()) return refused(404, "there is no such page");
  if (request.method != "POST") {
    HttpReply reply = refused(405, fmt::format("{} takes POST", request.path));
    reply.allow = "POST";
    return reply;
  }
  PageQuestion asked;
  try {
    asked = read_question(request.body);
  } catch (const UsageError& e) {
    return refused(400, e.what());
  }
  const bool taken = queue_->push([this, path, asked = std::move(asked), later] {
    later([reply = answer(answers_, *path, asked)] { return reply; });
  });
  if (!taken) return refused(503, "too many questions wait for an answer", "ask again in a moment");
  return std::nullopt;
}

}  // namespace reckon::cli
