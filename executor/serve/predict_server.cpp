#include "executor/serve/predict_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "executor/http/http_server.h"
#include "executor/serve/predict_body.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLeastBody = 64 << 10, kLargestBody = 64 << 20;
constexpr std::uint64_t kBytesPerNumber = 32;  // of JSON: 17 digits, sign, exponent, spaces
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kMetrics = "text/plain; version=0.0.4; charset=utf-8";
constexpr unsigned kOk = 200, kBadRequest = 400, kNotFound = 404, kNotAllowed = 405;
constexpr unsigned kServerError = 500, kUnavailable = 503;

HttpReply json(unsigned status, std::string body) {
  return {.status = status, .body = std::move(body), .type = kJson};
}
HttpReply refusal(unsigned status, std::string_view what) { return json(status, error_text(what)); }

/// What a path of the model asks for.
struct Target {
  bool predict = false;  // else its status
  std::optional<std::int64_t> version;
};

/// nullopt: no path of this model.
std::optional<Target> parse_target(std::string_view path, const std::string& name) {
  const std::string model = "/v1/models/" + name;
  if (!path.starts_with(model)) return std::nullopt;
  path.remove_prefix(model.size());
  Target target;
  constexpr std::string_view kVersions = "/versions/", kPredict = ":predict";
  target.predict = path.ends_with(kPredict);
  if (target.predict) path.remove_suffix(kPredict.size());
  if (path.starts_with(kVersions)) {
    const auto version = parse_integer(path.substr(kVersions.size()));
    if (!version) return std::nullopt;
    target.version = *version;
    path = {};
  }
  return path.empty() ? std::optional(target) : std::nullopt;
}

}  // namespace

class PredictServer::Server {
 public:
  Server(PredictServer::Options options, Batcher& batcher, ServingMetrics& metrics)
      : name_(std::move(options.name)),
        batcher_(batcher),
        metrics_(metrics),
        http_({.listen = options.listen,
               .token = std::move(options.token),
               .open_paths = {"/healthz", "/livez"},
               .largest_body = [this] { return largest_body(); },
               .refusal = refusal},
              [this](HttpRequest request, HttpAnswerLater later) {
                return answer_to(std::move(request), std::move(later));
              }) {}

  ListenAddress address() const { return http_.address(); }
  void begin_to_end() {
    ending_ = true;
    http_.begin_to_end();
  }
  void drain(std::chrono::seconds patience) {
    ending_ = true;
    http_.drain(patience);
  }

 private:
  /// A full batch in generous JSON: of anything larger no byte is kept.
  std::uint64_t largest_body() const {
    const auto model = batcher_.model();
    if (!model) return kLeastBody;
    const auto numbers = model->input_size() * std::uint64_t(batcher_.rules().max);
    return std::clamp(numbers * kBytesPerNumber, kLeastBody, kLargestBody);
  }
  HttpReply health() const {
    if (ending_) return {.status = kUnavailable, .body = "ending\n"};
    if (!batcher_.model())
      return {.status = kUnavailable, .body = "no version has been loaded yet\n"};
    return {.body = "ok\n"};
  }

  std::optional<HttpReply> answer_to(HttpRequest request, HttpAnswerLater later) {
    const bool reads = request.method == "GET" || request.method == "HEAD";
    const std::string& path = request.path;
    if (reads && path == "/healthz") return health();
    if (reads && path == "/livez") return HttpReply{.body = "ok\n"};
    if (reads && path == "/metrics") return HttpReply{.body = metrics_.page(), .type = kMetrics};
    const std::shared_ptr<ServedModel> model = batcher_.model();
    if (!model) return refusal(kUnavailable, "no version has been loaded yet");
    if (name_.empty()) name_ = model->name();
    const auto asked = parse_target(path, name_);
    if (!asked)
      return refusal(
          kNotFound,
          fmt::format("nothing is at {}; predictions are at /v1/models/{}:predict", path, name_));
    if (asked->predict && request.method == "POST")
      return predict(std::move(request), *asked, *model, std::move(later));
    if (asked->predict || !reads) return wrong_method(asked->predict);
    if (auto missing = not_served(*asked, *model)) return missing;
    return json(kOk, status_text(model->version(), ending_));
  }

  static HttpReply wrong_method(bool predict) {
    HttpReply reply =
        refusal(kNotAllowed, predict ? "predictions are asked for with POST" : "GET it");
    reply.allow = predict ? "POST" : "GET, HEAD";
    return reply;
  }
  static std::optional<HttpReply> not_served(const Target& asked, const ServedModel& model) {
    if (!asked.version || *asked.version == model.version()) return std::nullopt;
    return refusal(kNotFound,
                   fmt::format("version {} is not served, {} is", *asked.version, model.version()));
  }

  /// Every request to predict is counted, with its answer.
  std::optional<HttpReply> predict(HttpRequest request, const Target& target,
                                   const ServedModel& model, HttpAnswerLater later) {
    const auto counted = [this, came = request.complete](HttpReply reply) {
      metrics_.add_request(reply.status, Clock::now() - came);
      return reply;
    };
    if (auto missing = not_served(target, model)) return counted(std::move(*missing));
    auto instances = parse_instances(request.body, std::size_t(batcher_.rules().max));
    if (!instances) return counted(refusal(kBadRequest, instances.error()));
    for (const auto& instance : *instances)
      if (const auto reason = model.refuse(instance)) return counted(refusal(kBadRequest, *reason));
    const Clock::duration before = Clock::now() - request.first_byte;
    // Called by the batcher's thread, whose time is dear: the answer is written by the server's.
    auto done = [this, counted, before, later = std::move(later)](PredictResult result) {
      later([this, counted, before, result_at = Clock::now(), result = std::move(result)] {
        return counted(reply_with(result, before, result_at));
      });
    };
    if (batcher_.submit(std::move(*instances), std::move(done))) return std::nullopt;
    return counted(refusal(kUnavailable, "the queue is full"));
  }

  /// before: what the request took before it was queued.
  HttpReply reply_with(const PredictResult& result, Clock::duration before,
                       Clock::time_point result_at) {
    if (const auto* error = std::get_if<PredictError>(&result))
      return refusal(error->of_client ? kBadRequest : kServerError, error->what);
    HttpReply reply = json(kOk, predictions_text(std::get<Predictions>(result).answers));
    reply.written = [this, before, result_at] {
      metrics_.add_outside(before + (Clock::now() - result_at));
    };
    return reply;
  }

  std::string name_;  // of the server's thread alone
  Batcher& batcher_;
  ServingMetrics& metrics_;
  std::atomic<bool> ending_{false};
  HttpServer http_;  // last: its thread uses what is above
};

PredictServer::PredictServer(Options options, Batcher& batcher, ServingMetrics& metrics)
    : server_(std::make_unique<Server>(std::move(options), batcher, metrics)) {}
PredictServer::~PredictServer() = default;
ListenAddress PredictServer::address() const { return server_->address(); }
void PredictServer::begin_to_end() { server_->begin_to_end(); }
void PredictServer::drain(std::chrono::seconds patience) { server_->drain(patience); }

}  // namespace reckon
