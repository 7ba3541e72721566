#include "cli/worker/serve.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/exit_code.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/worker/help.h"
#include "executor/http/bearer_token.h"
#include "executor/worker/serving.h"
#include "sim/scenario/resolve/one_job.h"

namespace reckon::cli {
namespace {

struct ServeOptions : Files, CatalogChoice {
  worker::ServingOptions serving;
  Seconds batch_wait{};
  std::string token_file;

  std::vector<Option> declared();
};

Read listen_address(ListenAddress& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto address = parse_listen_address(text);
    if (!address) throw UsageError(fmt::format("--{}: {}", name, address.error()));
    to = *address;
  };
}

std::vector<Option> ServeOptions::declared() {
  worker::ServingOptions& s = serving;
  return {
      {{"name", "NAME", "of the model in paths (its network's)"}, text(s.name)},
      {{"listen", "[ADDRESS:]PORT",
        "of HTTP; 0.0.0.0:8501: all of this machine's IPv4 addresses "
        "(127.0.0.1:8501; port 0 picks a free one)"},
       listen_address(s.listen)},
      {{"token-file", "FILE",
        "bearer token that requests have to show, but for /healthz and "
        "/livez (none)"},
       text(token_file)},
      {{"batch-max", "N", "instances of one forward pass (16)"}, whole(s.rules.max, 1, 4096)},
      {{"batch-wait", "DURATION", "of the first instance of a batch for others (0s)"},
       duration(batch_wait)},
      {{"queue-limit", "N", "instances that wait; others are refused with 503 (1000)"},
       whole(s.rules.queue_limit, 1, 1'000'000)},
      {{"poll", "DURATION", "between two looks for a new version (1s)"}, duration(s.poll)},
      {{"linger", "DURATION", "answering on when told to stop, 503 at /healthz (10s)"},
       duration(s.linger)},
      {{"threads", "N", "that compute (the machine's cores)"}, whole(s.threads, 1, 4096)},
      {{"catalog", "DIR", "overlay of the catalogs (repeatable)"}, paths(catalogs), true},
  };
}

std::string serve_help() {
  ServeOptions options;
  return "Answers requests with the newest version of a model directory, and loads a newer one "
         "when it "
         "appears.\n\nUsage: reckon-worker serve MODEL [options]\n\n" +
         described(options.declared());
}

/// The network that a version's plan.yaml describes.
ModelGraph served_network(const ModelVersion& version, const LoadedCatalog& catalog) {
  auto plan = read_plan(version.plan().string(), {}, catalog);
  if (!plan)
    throw ModelVersionError(
        fmt::format("{}: {}", version.plan().string(), plan.error().front().what));
  if (const auto several = why_not_one_job(plan->plan, plan->file.places, "a version"))
    throw ModelVersionError(format(*several));
  return std::move(plan->plan.only_job().model);
}

}  // namespace

int run_serve(std::span<const std::string> words) {
  ServeOptions options;
  if (!read_words(options.declared(), options.files, words)) {
    print(serve_help());
    return kDone;
  }
  if (options.files.size() != 1)
    throw UsageError("serve takes one model directory: reckon-worker serve MODEL");
  worker::ServingOptions& serving = options.serving;
  serving.model = options.files.front();
  serving.rules.wait = std::chrono::duration_cast<std::chrono::microseconds>(options.batch_wait);
  if (!options.token_file.empty()) serving.token = read_token_file(options.token_file);
  const LoadedCatalog catalog = checked(load_catalogs(options));
  worker::run_serving(
      serving, [&](const ModelVersion& version) { return served_network(version, catalog); });
  return kDone;
}

}  // namespace reckon::cli
