#pragma once
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>

#include "cli/background_job.h"
#include "executor/train/records/measurement_log.h"
#include "kubernetes/cluster.h"

namespace reckon::test {

/// A job in a namespace of its own of a cluster, watched by `reckon run --on kubernetes` in the
/// background; another may take the launcher's place.
class WatchedJob {
 public:
  WatchedJob(const Cluster& cluster, std::string name)
      : cluster_(cluster), space_(cluster_.make_space(name, w_)), name_(std::move(name)) {}
  ~WatchedJob() { cluster_.kubectl("delete namespace " + name_ + " --wait=false"); }
  WatchedJob(const WatchedJob&) = delete;
  WatchedJob& operator=(const WatchedJob&) = delete;

  /// A launcher of its own; standard error is appended to OUT.err.
  void start(const std::string& words, const std::string& out = "run") {
    out_ = out;
    launcher_.reset();
    launcher_ = std::make_unique<BackgroundJob>(w_, words, out, "--on kubernetes",
                                                "env " + variables_ + environment_, kPatience);
  }
  /// Variables of launchers that are started from here on, each with a space behind it.
  void set_variables(const std::string& variables) { variables_ = variables; }
  /// The cluster as launchers see it from here on.
  void set_environment(const std::string& environment) { environment_ = environment; }

  bool running() { return launcher_->running(); }
  void kill_launcher() {
    launcher_->signal(SIGKILL);
    REQUIRE(wait_for([&] { return !running(); }));
  }
  int code() {
    const int code = launcher_->code();
    INFO(output() << errors());
    REQUIRE(!running());
    return code;
  }
  std::string output() const { return launcher_->output(); }
  std::string errors() const { return launcher_->errors(); }
  /// Or the launcher has ended, and will say nothing more.
  bool said(const std::string& text) { return contains(errors(), text) || !running(); }
  /// Waits; false: the launcher has ended. kubectl asks a server five times a second, and there may
  /// be hundreds of objects.
  bool comes_to_say(const std::string& text) {
    const bool said_it = launcher_->wait_for([&] { return contains(errors(), text); });
    if (!said_it) UNSCOPED_INFO(output() << errors());
    return said_it;
  }
  Measurements measured() const {
    const auto read = read_measurement_log(w_.path(out_) / "measurements.jsonl");
    REQUIRE(read);
    return *read;
  }
  bool has_steps(std::size_t count) {
    const std::string text = read_all(w_.path(out_) / "measurements.jsonl");
    return std::size_t(std::count(text.begin(), text.end(), '\n')) > count || !running();
  }

  nlohmann::json pods(int attempt) const {
    return cluster_.get("pods -n " + name_ + " -l reckon/attempt=" + std::to_string(attempt))
        .at("items");
  }
  /// Of the newest attempt.
  std::string pod_of(int rank) const {
    std::string name;
    const nlohmann::json pods = cluster_.get("pods -n " + name_);
    for (const auto& pod : pods.at("items"))
      if (rank_of(pod) == rank)
        name = std::max(name, pod.at("metadata").at("name").get<std::string>());
    return name;
  }
  static int rank_of(const nlohmann::json& pod) {
    return std::stoi(pod.at("metadata").at("annotations").value("reckon/first-rank", "-1"));
  }
  void kubectl(const std::string& words) const { cluster_.kubectl("-n " + name_ + ' ' + words); }
  Output reckon(const std::string& words) const { return w_.run(words, cluster_.environment()); }

  const Cluster& cluster() const { return cluster_; }
  const Cluster::Space& space() const { return space_; }
  const Workspace& files() const { return w_; }
  const std::string& name() const { return name_; }

 private:
  /// A cluster on a machine that has fifty other things to do.
  static constexpr std::chrono::minutes kPatience{40};

  Workspace w_;
  const Cluster& cluster_;
  Cluster::Space space_;
  std::string name_, out_, variables_, environment_ = cluster_.environment();
  std::unique_ptr<BackgroundJob> launcher_;
};

}  // namespace reckon::test
