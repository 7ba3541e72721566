#include "executor/worker/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "executor/serve/predict_server.h"
#include "executor/train/stop_signal.h"
#include "sim/base/standard_streams.h"

namespace reckon::worker {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// Looks for versions that are newer than the one that answers, and puts them to work.
class Versions {
 public:
  Versions(fs::path model, const NetworkOf& network_of, int batch_max, Workers& workers)
      : model_(std::move(model)),
        network_of_(network_of),
        batch_max_(batch_max),
        workers_(workers) {}

  std::shared_ptr<ServedModel> load(const ModelVersion& version) const {
    return std::make_shared<ServedModel>(network_of_(version), version, batch_max_, workers_);
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
      print_error(fmt::format(
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
  const NetworkOf& network_of_;
  int batch_max_;
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
    if (!first) return print(fmt::format("version {} answers\n", model->version()));
    if (name.empty()) name = model->name();
    metrics.set_model(name);
    if (address) announce();
  }
  void announce() const {
    const std::string here = text(reachable_here(*address));
    if (const auto model = batcher.model())
      return print(fmt::format("version {} of {} answers at http://{}/v1/models/{}:predict\n",
                               model->version(), name, here, name));
    print(fmt::format(
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

}  // namespace

void run_serving(const ServingOptions& options, const NetworkOf& network_of) {
  Workers workers(options.threads);
  if (!fs::is_directory(options.model))
    throw ModelVersionError(fmt::format(
        "there is no directory {}: `reckon-worker export` makes one", options.model.string()));
  Serving serving{.versions = Versions(options.model, network_of, options.rules.max, workers),
                  .metrics = ServingMetrics(options.name),
                  .batcher = Batcher(options.rules, nullptr, serving.metrics),
                  .name = options.name};
  serving.look();
  PredictServer server({.name = serving.name, .listen = options.listen, .token = options.token},
                       serving.batcher, serving.metrics);
  serving.address = server.address();
  serving.announce();
  wait_for_stop(serving, options.poll);
  server.begin_to_end();
  print("stopping: what comes until then is answered; a second signal ends the wait\n");
  linger(options.linger);
  server.drain(30s);
}

}  // namespace reckon::worker
