#pragma once
#include <signal.h>
#include <catch2/catch.hpp>

#include <memory>

#include "executor/launch/process.h"
#include "executor/train/measurement_log.h"
#include "kubernetes/cluster.h"

// A job of a program that is not ours in real pods: a script of the shell in an image with nothing
// but a shell.
namespace reckon::test {

inline std::string image_of(const std::string& job) { return "localhost/" + job + "-trainer:1"; }

/// `workers` and `servers` of a script that tells its steps as "it 12 | mse 0.5".
inline std::string foreign_job(const std::string& name, int steps, int workers, int servers = 0) {
  const std::string strategy = servers == 0
                                   ? "multi_worker_mirrored, workers: " + std::to_string(workers)
                                   : "parameter_server, workers: " + std::to_string(workers) +
                                         ", parameter_servers: " + std::to_string(servers);
  const auto pool = [](const char* role, int nodes) {
    return std::string("    - {name: ") + role + "s, role: " + role +
           ", nodes: " + std::to_string(nodes) +
           ", machine: {vcpu: 1, memory: 1GiB, network: 10Gbps}}\n";
  };
  return "name: " + name +
         "\nworkload:\n"
         "  container:\n"
         "    image: " +
         image_of(name) +
         "\n"
         "    command: [/bin/train, --job-dir]\n"
         "    profile: mlp_boston_housing\n"
         "    metrics: {log: 'it (?<step>[0-9]+) \\| mse (?<loss>[0-9.]+)'}\n"
         "  dataset: {samples: 4040, bytes_per_sample: 112B}\n"
         "  train: {steps: " +
         std::to_string(steps) +
         "}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 8\n"
         "  strategy: {kind: " +
         strategy +
         "}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n" +
         pool("worker", workers) + (servers > 0 ? pool("parameter_server", servers) : "");
}

class ForeignJob {
 public:
  /// `script`: /bin/train of its image; `scenario`: of the job `name`.
  ForeignJob(const std::string& name, const std::string& script, const std::string& scenario)
      : cluster_(Cluster::with_node()), name_(name) {
    w_.write("train", script);
    cluster_.load_image(w_, image_of(name),
                        {"train:bin/train:755", "/bin/sh:bin/sh", "/bin/sleep:bin/sleep",
                         "/bin/mkdir:bin/mkdir", "/bin/mv:bin/mv"});
    space_ = cluster_.make_space(name, w_);
    w_.write("job.yaml", scenario);
  }
  ~ForeignJob() { cluster_.kubectl("delete namespace " + name_ + " --wait=false"); }
  ForeignJob(const ForeignJob&) = delete;
  ForeignJob& operator=(const ForeignJob&) = delete;

  void start_new(const std::string& more = "--retry-delay 1s") {
    start("job.yaml --replications 20 --claim checkpoints " + more, "run");
  }
  void start(const std::string& words, const std::string& out) {
    out_ = out;
    process_ = std::make_unique<ChildProcess>(
        ProcessSpec{"reckon",
                    {"sh", "-c",
                     "cd '" + w_.path("").string() + "' && exec env " + cluster_.environment() +
                         " '" RECKON_BINARY_DIR "/bin/reckon' run --on kubernetes --out " + out +
                         ' ' + words + " > " + out + ".out 2>> " + out + ".err"},
                    {},
                    {}});
  }
  bool running() { return !process_->poll_end(); }
  void kill_launcher() {
    process_->signal(SIGKILL);
    REQUIRE(wait_for([&] { return !running(); }));
  }
  int code() {
    const bool ended = wait_for([&] { return !running(); }) || wait_for([&] { return !running(); });
    INFO(errors());
    REQUIRE(ended);
    const ProcessEnd end = *process_->poll_end();
    return end.signal != 0 ? 128 + end.signal : end.code;
  }
  std::string output() const { return read_all(w_.path(out_ + ".out")); }
  std::string errors() const { return read_all(w_.path(out_ + ".err")); }
  bool said(const std::string& text) { return contains(errors(), text) || !running(); }
  Measurements measured() const {
    const auto read = read_measurement_log(w_.path(out_) / "measurements.jsonl");
    REQUIRE(read);
    return *read;
  }
  std::string pod_of(int rank) const {
    std::string name;
    const nlohmann::json pods = cluster_.get("pods -n " + name_);
    for (const auto& pod : pods.at("items"))
      if (pod.at("metadata").at("annotations").value("reckon/first-rank", "") ==
          std::to_string(rank))
        name = std::max(name, pod.at("metadata").at("name").get<std::string>());
    return name;
  }
  void kubectl(const std::string& words) const { cluster_.kubectl("-n " + name_ + ' ' + words); }
  Output reckon(const std::string& words) const { return w_.run(words); }

 private:
  Workspace w_;
  Cluster& cluster_;
  Cluster::Space space_;
  std::string name_, out_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace reckon::test
