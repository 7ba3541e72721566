#include "cli/worker/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/worker/arguments.h"
#include "executor/http/bearer_token.h"
#include "executor/serve/predict_server.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/run_directory.h"
#include "executor/train/stop_signal.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/training_text.h"
#include "sim/scenario/yaml/document.h"

namespace reckon::worker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::array kServeRows{
    OptionRow{"name", "NAME", "of the model in paths (its network's)"},
    OptionRow{"listen", "[ADDRESS:]PORT",
              "of HTTP; 0.0.0.0:8501: all of this machine's IPv4 addresses "
              "(127.0.0.1:8501; port 0 picks a free one)"},
    OptionRow{"token-file", "FILE",
              "bearer token that requests have to show, but for /healthz and "
              "/livez (none)"},
    OptionRow{"batch-max", "N", "instances of one forward pass (16)"},
    OptionRow{"batch-wait", "DURATION", "of the first instance of a batch for others (0s)"},
    OptionRow{"queue-limit", "N", "instances that wait; others are refused with 503 (1000)"},
    OptionRow{"poll", "DURATION", "between two looks for a new version (1s)"},
    OptionRow{"linger", "DURATION", "answering on when told to stop, 503 at /healthz (10s)"},
    OptionRow{"threads", "N", "that compute (the machine's cores)"},
    OptionRow{"catalog", "DIR", "a catalog laid over ours; may be repeated"},
};
constexpr std::array kExportRows{
    OptionRow{"plan", "FILE", "what was trained, where no `reckon run` kept it in RUN"},
    OptionRow{"set", "PATH=VALUE", "changed in it then; may be repeated"},
    OptionRow{"layer", "FILE", "laid over it then; may be repeated"},
    OptionRow{"catalog", "DIR", "a catalog laid over ours; may be repeated"},
};

std::string described(std::span<const OptionRow> rows) {
  return describe(rows, 26) + fmt::format("  {:<26} {}\n", "--help", "this text");
}

struct Refused {};  // diagnostics were printed

template <class T>
T take(Expected<T> value) {
  if (value) return std::move(*value);
  cli::report(value.error());
  throw Refused{};
}

cli::Options common_options(const Arguments& arguments) {
  cli::Options common;
  for (const std::string& directory : arguments.all("catalog"))
    common.catalogs.emplace_back(directory);
  return common;
}

/// The network that a version's plan.yaml describes.
ModelGraph network_of(const ModelVersion& version, const cli::Options& common,
                      const cli::LoadedCatalog& catalog) {
  auto plan = cli::read_plan(version.plan().string(), common, catalog);
  if (!plan)
    throw ModelVersionError(
        fmt::format("{}: {}", version.plan().string(), plan.error().front().what));
  return std::move(plan->plan.jobs.front().model);
}

std::string server_help_head() {
  return "Answers requests with the newest version of a model directory, and loads a newer one "
         "when it "
         "appears.\n\nUsage: reckon-worker serve MODEL [options]\n\n";
}

/// Looks for versions that are newer than the one that answers, and puts them to work.
class Versions {
 public:
  Versions(fs::path model, cli::Options common, int batch_max, const cli::LoadedCatalog& catalog,
           Workers& workers)
      : model_(std::move(model)),
        common_(std::move(common)),
        batch_max_(batch_max),
        catalog_(catalog),
        workers_(workers) {}

  std::shared_ptr<ServedModel> load(const ModelVersion& version) const {
    return std::make_shared<ServedModel>(network_of(version, common_, catalog_), version,
                                         batch_max_, workers_);
  }
  /// A version that cannot be loaded is said once, and an older one that can, or the one that
  /// answers, goes on. It is tried again when its files change, and after a while: the volume may
  /// have failed, not the version. True: a newer one answers.
  bool look(Batcher& batcher, ServingMetrics& metrics) {
    const std::size_t before = refusals_;
    const auto answering = batcher.model();
    auto model = newest_above(answering ? answering->version() : 0, list_versions(model_));
    for (std::size_t k = before; k < refusals_; ++k) metrics.add_refused_version();
    if (!model) return false;
    warm_up(*model, answering == nullptr, metrics);
    metrics.set_version(model->version());
    batcher.use(std::move(model));
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// Beside a version that answers only a pass or two: they take the cores of its requests, and
  /// what they take says little.
  static void warm_up(ServedModel& model, bool alone, ServingMetrics& metrics) {
    constexpr std::chrono::milliseconds kAlone = 2s, kBeside = 1ms;
    const auto timed = model.warm_up(alone ? kAlone : kBeside);
    if (!alone) return;
    for (const TimedBatch& batch : timed)
      metrics.set_alone(std::size_t(batch.instances), batch.time);
  }
  /// Changes while somebody copies the version's files: it is tried again then.
  using Stamp = std::array<std::int64_t, 5>;
  struct Refusal {
    Stamp stamp{};
    std::string what;
    std::chrono::seconds pause{5};  // doubled from one failure to the next
    Clock::time_point again;
  };

  /// nullptr: none above that number can be loaded.
  std::shared_ptr<ServedModel> newest_above(std::int64_t number,
                                            const std::vector<ModelVersion>& versions) {
    for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
      if (version->number <= number) break;
      const Stamp stamp = stamp_of(*version);
      const auto refused = refused_.find(version->number);
      const bool same = refused != refused_.end() && refused->second.stamp == stamp;
      if (same && Clock::now() < refused->second.again) continue;
      try {
        auto model = load(*version);
        refused_.erase(version->number);
        return model;
      } catch (const std::exception& e) {
        refuse(version->number, stamp, e.what(), number);
      }
    }
    return nullptr;
  }
  void refuse(std::int64_t number, const Stamp& stamp, const std::string& what,
              std::int64_t answering) {
    constexpr std::chrono::seconds kLongest{600};
    Refusal& refusal = refused_[number];
    if (refusal.what != what || refusal.stamp != stamp) {
      refusal = {stamp, what};
      ++refusals_;
      cli::print_error(fmt::format(
          "version {} cannot be loaded{}: {}\n", number,
          answering > 0 ? fmt::format(", {} goes on", answering) : std::string(), what));
    } else {
      refusal.pause = std::min(2 * refusal.pause, kLongest);
    }
    refusal.again = Clock::now() + refusal.pause;
  }
  static Stamp stamp_of(const ModelVersion& version) {
    std::error_code missing;
    const auto when = [&](const fs::path& path) {
      return std::int64_t(fs::last_write_time(path, missing).time_since_epoch().count());
    };
    const auto size = [&](const fs::path& path) {
      const auto bytes = fs::file_size(path, missing);
      return missing ? std::int64_t{-1} : std::int64_t(bytes);
    };
    return {when(version.directory), when(version.weights()), size(version.weights()),
            when(version.plan()), size(version.plan())};
  }

  fs::path model_;
  cli::Options common_;
  int batch_max_;
  const cli::LoadedCatalog& catalog_;
  Workers& workers_;
  std::map<std::int64_t, Refusal> refused_;  // by number
  std::size_t refusals_ = 0;                 // that were said
};

/// A server, what it answers with, and how it is called.
struct Serving {
  Versions versions;
  ServingMetrics metrics;
  Batcher batcher;
  std::string name;                      // given; else that of the first network that answers
  std::optional<ListenAddress> address;  // once it listens

  void look() {
    const bool first = batcher.model() == nullptr;
    if (!versions.look(batcher, metrics)) return;
    const auto model = batcher.model();
    if (!first) return cli::print(fmt::format("version {} answers\n", model->version()));
    if (name.empty()) name = model->name();
    metrics.set_model(name);
    if (address) announce();
  }
  void announce() const {
    const std::string here = text(reachable_here(*address));
    if (const auto model = batcher.model())
      return cli::print(fmt::format("version {} of {} answers at http://{}/v1/models/{}:predict\n",
                                    model->version(), name, here, name));
    cli::print(fmt::format(
        "no version answers yet: waiting for one, as `reckon-worker export` makes them; 503 at "
        "http://{}/healthz until then\n",
        here));
  }
};

void wait_for_stop(Serving& serving, Seconds poll) {
  using Clock = std::chrono::steady_clock;
  const auto pause = std::chrono::duration_cast<Clock::duration>(poll);
  auto next = Clock::now() + pause;
  while (!stop_requested()) {
    if (Clock::now() >= next) {
      serving.look();
      next = Clock::now() + pause;
    }
    std::this_thread::sleep_for(20ms);
  }
}

/// Whoever balances load goes on sending requests here until it has heard that this server ends. A
/// second signal ends the wait.
void linger(Seconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  while (Clock::now() < end && stop_requests() < 2) std::this_thread::sleep_for(20ms);
}

ListenAddress listen_address(const Arguments& arguments) {
  const auto address = parse_listen_address(arguments.one("listen").value_or("127.0.0.1:8501"));
  if (!address) throw std::invalid_argument("--listen: " + address.error());
  return *address;
}
std::string token_of(const Arguments& arguments) {
  const auto file = arguments.one("token-file");
  return file ? read_token_file(*file) : std::string();
}

int serve(const Arguments& arguments, const std::string& model) {
  const cli::Options common = common_options(arguments);
  const BatchRules rules{
      .max = arguments.whole("batch-max", 1, 4096).value_or(16),
      .wait = std::chrono::duration_cast<std::chrono::microseconds>(
          arguments.duration("batch-wait").value_or(Seconds{})),
      .queue_limit = arguments.whole("queue-limit", 1, 1'000'000).value_or(1000)};
  const Seconds poll = arguments.duration("poll").value_or(1s);
  const Seconds patience = arguments.duration("linger").value_or(10s);
  PredictServer::Options options{.name = arguments.one("name").value_or(""),
                                 .listen = listen_address(arguments),
                                 .token = token_of(arguments)};
  const int threads = arguments.whole("threads", 1, 4096).value_or(0);

  const cli::LoadedCatalog catalog = take(cli::load_catalogs(common));
  Workers workers(threads);
  if (!fs::is_directory(model))
    throw ModelVersionError(
        fmt::format("there is no directory {}: `reckon-worker export` makes one", model));
  Serving serving{.versions = Versions(model, common, rules.max, catalog, workers),
                  .metrics = ServingMetrics(options.name),
                  .batcher = Batcher(rules, nullptr, serving.metrics),
                  .name = options.name};
  serving.look();
  options.name = serving.name;
  PredictServer server(std::move(options), serving.batcher, serving.metrics);
  serving.address = server.address();
  serving.announce();
  wait_for_stop(serving, poll);
  server.begin_to_end();
  cli::print("stopping: what comes until then is answered; a second signal ends the wait\n");
  linger(patience);
  server.drain(30s);
  return cli::kDone;
}

/// The scenario that was trained: what the command line says, or what `reckon run` kept.
struct Trained {
  cli::ScenarioText of;
  std::vector<std::string> overrides;
  std::vector<fs::path> layers;
};
Trained trained(const Arguments& arguments, const RunDirectory& run) {
  Trained t;
  if (const auto plan = arguments.one("plan")) {
    t.of = take(cli::scenario_text(*plan));
    t.overrides = arguments.all("set");
    for (const std::string& layer : arguments.all("layer"))
      t.layers.emplace_back(fs::absolute(layer));
  } else if (fs::exists(run.plan())) {
    t.of = take(cli::scenario_text(run.plan().string()));
  } else {
    throw ModelVersionError(
        fmt::format("{} does not say what was trained, as `reckon run` does: give the plan with "
                    "--plan FILE",
                    run.root.string()));
  }
  t.of.file = fs::absolute(t.of.file).string();
  return t;
}

YamlNode* value_of(YamlNode* map, std::string_view key) {
  if (map == nullptr) return nullptr;
  for (YamlNode::Entry& entry : map->entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

struct VersionText {
  std::string plan;
  std::vector<VersionFile> beside;
};

/// A version goes to other machines: a config that the plan names, by a path from `directory`, goes
/// with it.
VersionText to_go(const std::string& plan, const fs::path& directory) {
  YamlNode root = take(parse_yaml(plan, "plan.yaml"));
  YamlNode* config = value_of(value_of(value_of(&root, "workload"), "model"), "huggingface");
  if (config == nullptr) return {plan, {}};
  fs::path file = directory / config->text;
  if (fs::is_directory(file)) file /= "config.json";
  config->text = "config.json";
  return {write_yaml(root), {{config->text, read_file_text(file)}}};
}

int export_model(const Arguments& arguments, const fs::path& run, const fs::path& model) {
  const cli::Options common = common_options(arguments);
  const cli::LoadedCatalog catalog = take(cli::load_catalogs(common));
  const auto [of, overrides, layers] = trained(arguments, RunDirectory{run});
  constexpr std::array<std::string_view, 2> kLeftOut{"planned", "expect"};
  const std::string plan = take(training_text(of.text, of.file, overrides, layers, kLeftOut));
  const auto scenario = take(cli::load_scenario_text(plan, of.file, common));
  const Plan made = take(make_plan(scenario, catalog));
  const ModelGraph& network = made.jobs.front().model;
  if (const auto reason = why_not_served(network)) throw ModelVersionError(*reason);
  const VersionText going = to_go(plan, fs::path(of.file).parent_path());
  const ExportedVersion version = export_version(run, network, going.plan, model, going.beside);
  for (const std::string& why : version.refused)
    cli::print_error(fmt::format("reckon-worker: warning: {}\n", why));
  if (!version.refused.empty())
    cli::print_error(fmt::format("reckon-worker: exported in its place: {}\n", version.source));
  cli::print(fmt::format("{} is version {} of {}\n", version.directory.string(), version.number,
                         network.name()));
  return cli::kDone;
}

template <class Body>
int guarded(Body body) {
  try {
    return body();
  } catch (const Refused&) {
    return cli::kInputIsWrong;
  } catch (const ModelVersionError& e) {
    cli::print_error(fmt::format("reckon-worker: error: {}\n", e.what()));
    return cli::kInputIsWrong;
  }
}

}  // namespace

std::string serve_help() { return server_help_head() + described(kServeRows); }

std::string export_help() {
  return "Makes what a run has trained the next version of a model directory.\n\n"
         "Usage: reckon-worker export RUN MODEL [options]\n\n" +
         described(kExportRows);
}

int run_serve(std::span<const std::string> words) {
  const Arguments arguments(kServeRows, "path", words);
  if (arguments.given("help")) {
    cli::print(serve_help());
    return cli::kDone;
  }
  const auto paths = arguments.all("path");
  if (paths.size() != 1)
    throw std::invalid_argument("serve takes one model directory: reckon-worker serve MODEL");
  return guarded([&] { return serve(arguments, paths.front()); });
}

int run_export(std::span<const std::string> words) {
  const Arguments arguments(kExportRows, "path", words);
  if (arguments.given("help")) {
    cli::print(export_help());
    return cli::kDone;
  }
  const auto paths = arguments.all("path");
  if (paths.size() != 2)
    throw std::invalid_argument(
        "export takes a run's directory and a model's: reckon-worker export RUN MODEL");
  return guarded([&] { return export_model(arguments, paths[0], paths[1]); });
}

}  // namespace reckon::worker
