#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "cli/run_reckon.h"
#include "executor/comm/rendezvous/job_secret.h"

// `reckon-worker` as those start it who do without `reckon run`: process by process, from a shell.
namespace reckon::test {

inline const std::string kWorker = "'" RECKON_BINARY_DIR "/bin/reckon-worker' ";

/// The plan of a small job of 8 steps. `pools`: more of them, each with a comma before it.
inline std::string small_plan(const std::string& workload,
                              const std::string& strategy = "{kind: single}", int nodes = 1,
                              const std::string& pools = "") {
  return "name: tiny\nworkload:\n" + workload + "  train: {steps: 8}\n  strategy: " + strategy +
         "\n  checkpoint: {interval: none}\n"
         "cluster:\n  provider: gcp\n  service: gce\n  region: us-central1\n  zone: us-central1-a\n"
         "  pools: [{name: node, role: worker, machine: n1-standard-8, nodes: " +
         std::to_string(nodes) + "}" + pools + "]\n";
}
inline const std::string kRecords =
    "  model: mlp_boston_housing\n  dataset: {samples: 404, bytes_per_sample: 112B}\n"
    "  batch_per_accelerator: 16\n";

/// A port at which processes can meet: nobody listens there now, and it is below those that the
/// system gives away (ip_local_port_range, 32768 and up), so that no other program is given it
/// before rank 0 listens, nor meets those who already look for rank 0 there.
inline int meeting_port() {
  static int next = 10000 + getpid() % 20000;
  while (true) {
    const int port = next++;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(std::uint16_t(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (free) return port;
    REQUIRE(next < 32768);
  }
}

/// "--secret-file ..." of the processes of a job: a new secret that its owner alone can read.
inline std::string secret_option(const Workspace& w, const std::string& name = "job.secret") {
  std::filesystem::remove(w.path(name));
  w.write(name, "");
  using std::filesystem::perms;
  std::filesystem::permissions(w.path(name), perms::owner_read | perms::owner_write);
  w.write(name, JobSecret::random().text() + "\n");
  return " --secret-file " + name;
}

/// What processes need that are to meet.
inline std::string meeting_point(const Workspace& w) {
  return " --master 127.0.0.1:" + std::to_string(meeting_port()) + secret_option(w);
}

/// Commands that wait in a shell: until the worker of `rank` has done a step, or the process whose
/// id is in $first is gone; until rank 0 has done `step`.
inline std::string until_steps_of(int rank) {
  return "until grep -q '\"rank\":" + std::to_string(rank) +
         ",\"step\":' run/measurements.jsonl 2>/dev/null || ! kill -0 $first; do sleep 0.01; "
         "done; ";
}
inline std::string until_first_did(int step) {
  return "for k in $(seq 9000); do grep -q '\"rank\":0,\"step\":" + std::to_string(step) +
         ",' run/measurements.jsonl && break; sleep 0.01; done; ";
}

/// A job with one parameter server whose processes are started one by one.
class ServerJob {
 public:
  /// Writes plan.yaml. `mode`: of the strategy, with what belongs to it.
  ServerJob(const Workspace& w, int workers, const std::string& mode) : w_(w), workers_(workers) {
    w.write("plan.yaml",
            small_plan(kRecords,
                       "{kind: parameter_server, workers: " + std::to_string(workers) +
                           ", parameter_servers: 1, mode: " + mode + "}",
                       workers,
                       ", {name: servers, role: parameter_server, machine: n1-standard-8, nodes: "
                       "1}"));
  }

  /// From now on processes have these options, and meet at another place.
  void start_again(const std::string& options, int attempt = 0) {
    common_ = kWorker + "plan.yaml --servers 1 --workers " + std::to_string(workers_) +
              " --threads 1 --out run --attempt " + std::to_string(attempt) + meeting_point(w_) +
              " " + options;
  }
  std::string server() const { return common_ + " --role ps --rank 0"; }
  std::string worker(int rank) const {
    return common_ + " --role worker --rank " + std::to_string(rank);
  }
  /// All of them, to their end: rank 0's code.
  Output run() const {
    std::string others = server() + " & ";
    for (int rank = 1; rank < workers_; ++rank) others += worker(rank) + " & ";
    return w_.run_shell(others + worker(0) + "; code=$?; wait; exit $code");
  }

 private:
  const Workspace& w_;
  int workers_;
  std::string common_;
};

}  // namespace reckon::test
