#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "cli/explore/answer_queue.h"
#include "cli/explore/explore_answers.h"
#include "executor/http/http_server.h"

namespace reckon::cli {

/// The page and what it asks, at 127.0.0.1 alone, for whoever has its link:
///   GET /              the page
///   POST /simulate     {"set": ["cluster.pools.p100.nodes=4"], "replications": 100}
///   POST /plan, /controls, /scenario   {"set": [...]}
/// Answers are those of ExploreAnswers. 422: what is wrong with the scenario, as `--errors json`
/// prints it. 400: the request is no such object.
class ExploreServer {
 public:
  /// Throws std::runtime_error where the port is taken.
  ExploreServer(const ExploreAnswers& answers, std::uint16_t port, int quick_replications);
  /// "http://127.0.0.1:PORT/?token=..."
  std::string link() const;

 private:
  std::optional<HttpReply> take(HttpRequest request, HttpAnswerLater later);

  const ExploreAnswers& answers_;
  const std::string token_, nonce_;
  const std::string page_;
  std::unique_ptr<AnswerQueue> queue_;  // outlives the server, whose answers it makes
  std::unique_ptr<HttpServer> server_;
};

}  // namespace reckon::cli
