#pragma once
#include <string>

#include "kubernetes/watched_job.h"

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

class ForeignJob : public WatchedJob {
 public:
  /// `script`: /bin/train of its image; `scenario`: of the job `name`.
  ForeignJob(const std::string& name, const std::string& script, const std::string& scenario)
      : WatchedJob(Cluster::with_node(), name) {
    files().write("train", script);
    cluster().load_image(files(), image_of(name),
                         {"train:bin/train:755", "/bin/sh:bin/sh", "/bin/sleep:bin/sleep",
                          "/bin/mkdir:bin/mkdir", "/bin/mv:bin/mv"});
    files().write("job.yaml", scenario);
  }
  void start_new(const std::string& more = "--retry-delay 1s") {
    start("job.yaml --replications 20 --claim checkpoints " + more);
  }
};

}  // namespace reckon::test
