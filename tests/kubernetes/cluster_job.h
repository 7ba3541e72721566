#pragma once
#include <filesystem>
#include <string>

#include "kubernetes/watched_job.h"
#include "support/small_job.h"
#include "support/trained_weights.h"

namespace reckon::test {

inline const std::string kRing = "{kind: multi_worker_mirrored, workers: 4, all_reduce: ring}";

/// A job of reckon-worker in real pods, and what becomes of it on this machine undisturbed.
class ClusterJob : public WatchedJob {
 public:
  ClusterJob(const std::string& name, const std::string& strategy, int nodes, int steps,
             int servers = 0, const std::string& more = "")
      : WatchedJob(Cluster::with_node(), name) {
    const std::string pool =
        servers == 0
            ? ""
            : "    - {name: servers, role: parameter_server, nodes: " + std::to_string(servers) +
                  ", machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}}\n";
    files().write("job.yaml", small_job(name, strategy, steps, more) + small_pool(nodes) + pool);
  }

  /// In kubectl's place: each pod asks for 440 thousandths of a core, so five do not fit on two
  /// cores, and they get by with less.
  void ask_for_less() {
    namespace fs = std::filesystem;
    files().write("modest-kubectl", R"sh(#!/bin/sh
case " $* " in
  *" --filename - "*) sed 's/cpu: "440m"/cpu: "330m"/' | exec kubectl "$@" ;;
  *) exec kubectl "$@" ;;
esac
)sh");
    fs::permissions(files().path("modest-kubectl"), fs::perms::owner_all);
    set_variables("RECKON_KUBECTL='" + files().path("modest-kubectl").string() + "' ");
  }
  void start_new(const std::string& more = "--retry-delay 1s --retries 20") {
    start("job.yaml --replications 20 --claim checkpoints --checkpoint-steps 100 --image " +
          cluster().image() + ' ' + more);
  }

  /// Waits for the end, which is a good one, and checks the result.
  void ends_well(int steps) {
    const int end = code();
    INFO(errors());
    REQUIRE(end == 0);
    check_result(steps);
  }

  /// The same parameters as on this machine.
  void check_parameters() {
    const Output local =
        files().run("run job.yaml --out local --replications 20 --checkpoint-steps 100");
    INFO(local.err << errors());
    REQUIRE(local.code == 0);
    const std::string expected = read_all(files().path("local") / "model.safetensors");
    REQUIRE(trained_weights(files().path("local") / "model.safetensors").size() == 5121);
    CHECK((read_all(space().volume / name() / "model.safetensors") == expected));
  }

  /// One pod was lost and the others held the state: two starts, the second behind the loss.
  Measurements measured_with_loss_of(int rank) {
    Measurements m = measured();
    REQUIRE(m.interruptions.size() == 1);
    CHECK(m.interruptions[0].rank == rank);
    CHECK(m.interruptions[0].detail == "rank " + std::to_string(rank) + " was deleted");
    CHECK(m.interruptions[0].lost_steps <= 1);
    REQUIRE(m.runs.size() == 2);
    CHECK(m.runs[1].first_step > 0);
    return m;
  }

  /// The same parameters and losses as on this machine, every step once.
  void check_result(int steps) {
    check_parameters();
    const auto here = read_measurement_log(files().path("local") / "measurements.jsonl");
    REQUIRE(here);
    const auto useful = measured().useful_steps(), reference = here->useful_steps();
    REQUIRE(useful.size() == std::size_t(steps));
    REQUIRE(reference.size() == std::size_t(steps));
    for (std::size_t k = 0; k < useful.size(); ++k) {
      REQUIRE(useful[k].step == reference[k].step);
      REQUIRE(useful[k].loss == reference[k].loss);
    }
    REQUIRE(!measured().ends.empty());
    CHECK(measured().ends.back().finished);
  }
};

}  // namespace reckon::test
