#include <algorithm>
#include <memory>
#include <set>

#include "kubernetes/watched_job.h"

// What befalls the nodes of a job, on machines that the kit's fake-nodes plays: they are lost,
// taken back, replaced; and a gang of the size of a real one.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// A job whose pods end when their nodes say so.
std::string gpu_job(const std::string& name, int nodes, int gpus_each) {
  return "name: " + name +
         "\nworkload:\n"
         "  container: {image: \"localhost/none:1\", command: [train], profile: resnet50}\n"
         "  dataset: imagenet\n"
         "  train: {steps: 1000}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: {kind: multi_worker_mirrored, workers: " +
         std::to_string(nodes) +
         "}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n"
         "    - name: gpus\n"
         "      machine: {vcpu: 8, memory: 32GiB, network: 10Gbps}\n"
         "      accelerator: {type: P100-PCIE-16, count: " +
         std::to_string(gpus_each) + "}\n      nodes: " + std::to_string(nodes) + "\n";
}

struct OwnCluster {
  Cluster own_cluster{Cluster::Parts::control_plane};
};

/// A job on nodes that are played, in a cluster of its own.
class FleetJob : private OwnCluster, public WatchedJob {
 public:
  FleetJob(const std::string& name, int nodes, int gpus_each) : WatchedJob(own_cluster, name) {
    files().write("job.yaml", gpu_job(name, nodes, gpus_each));
    files().write("lost", "");
  }

  /// `seconds`: how long a pod runs; negative: until its node is told otherwise.
  void play_nodes(const std::string& prefix, int count, int seconds) {
    const std::filesystem::path log = files().path(prefix + ".log");
    nodes_.push_back(std::make_unique<ChildProcess>(ProcessSpec{
        "fake-nodes",
        {"sh", "-c",
         "exec " + cluster().fake_nodes() + " --nodes " + std::to_string(count) + " --prefix " +
             prefix + " --run " + std::to_string(seconds) + " --lost-file '" +
             files().path("lost").string() + "' > '" + log.string() + "' 2>&1"},
        {},
        {}}));
    REQUIRE(wait_for([&] { return contains(read_all(log), "registered"); }));
    if (seconds >= 0) return;
    // Before a job asks for room: nodes that are ready are tainted as if they were not for a while.
    const auto all_ready = [&] {
      const nlohmann::json all = cluster().get("nodes").at("items");
      return count == std::count_if(all.begin(), all.end(), [&](const nlohmann::json& node) {
               const std::string name = node.at("metadata").value("name", "");
               return name.starts_with(prefix + '-') && !node.at("spec").contains("taints");
             });
    };
    REQUIRE(wait_for(all_ready));
  }
  void stop_nodes() { nodes_.clear(); }
  void lose(const std::string& node) { files().write("lost", node + "\n"); }

  void start_new(const std::string& more = "") {
    start("job.yaml --replications 20 --claim checkpoints --retry-delay 1s " + more);
  }
  int running_pods(int attempt) const {
    int count = 0;
    const nlohmann::json all = pods(attempt);
    for (const auto& pod : all) count += pod.at("status").value("phase", "") == "Running";
    return count;
  }
  bool all_run(int attempt, int count) {
    for (int k = 0; k < 4; ++k)
      if (wait_for([&] { return running_pods(attempt) == count || !running(); })) break;
    const int there = running_pods(attempt);
    if (there != count)
      UNSCOPED_INFO(there << " pods of attempt " << attempt << " run\n" << output() << errors());
    return there == count;
  }
  std::string node_of(int attempt, int rank) const {
    const nlohmann::json all = pods(attempt);
    for (const auto& pod : all)
      if (rank_of(pod) == rank) return pod.at("spec").value("nodeName", "");
    return "";
  }

 private:
  std::vector<std::unique_ptr<ChildProcess>> nodes_;
};

}  // namespace

TEST_CASE("a node that falls silent is a lost node, and the gang starts again without it",
          "[.long]") {
  FleetJob job("silent", 2, 8);
  job.play_nodes("node", 3, -1);
  job.start_new();
  REQUIRE(job.all_run(0, 2));
  const std::string lost = job.node_of(0, 1);
  job.lose(lost);
  REQUIRE(job.all_run(1, 2));
  CHECK(job.node_of(1, 0) != lost);
  CHECK(job.node_of(1, 1) != lost);
  job.stop_nodes();
  job.play_nodes("node", 3, 1);  // the program ends well
  CHECK(job.code() == 0);
  INFO(job.errors());
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::failure);
  CHECK(m.interruptions[0].detail == "worker 1 (ranks 8 to 15) " + lost + " is lost");
}

TEST_CASE("a spot node that is taken back is a preemption, and the job waits for another",
          "[.long]") {
  FleetJob job("spot", 2, 8);
  job.play_nodes("first", 2, -1);
  job.start_new();
  REQUIRE(job.all_run(0, 2));
  // As a cloud does it: a taint that says so, the pods are ended, and a while later the node is
  // gone.
  const std::string node = job.node_of(0, 0);
  job.cluster().kubectl("taint node " + node +
                        " cloud.google.com/impending-node-termination=:NoSchedule");
  job.cluster().kubectl("delete pod -n spot -l reckon/attempt=0 --field-selector spec.nodeName=" +
                        node);
  REQUIRE(job.comes_to_say("restarting"));
  job.cluster().kubectl("delete node " + node);
  REQUIRE(job.comes_to_say("no node yet"));
  job.play_nodes("second", 1, -1);  // its replacement
  REQUIRE(job.all_run(1, 2));
  CHECK((job.node_of(1, 0) == "second-0" || job.node_of(1, 1) == "second-0"));
  job.stop_nodes();
  job.play_nodes("first", 2, 1);
  job.play_nodes("second", 1, 1);
  CHECK(job.code() == 0);
  INFO(job.errors());
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::preemption);
  CHECK(m.interruptions[0].rank == 0);
  CHECK(m.interruptions[0].detail ==
        "worker 0 (ranks 0 to 7) " + node + " was reclaimed or shut down");
}

TEST_CASE("a gang of 256 pods on 64 nodes of 8 GPUs runs, loses a node, runs again and ends",
          "[.long]") {
  FleetJob job("gang", 256, 2);
  job.play_nodes("node", 64, -1);
  job.start_new("--pending 30min");
  REQUIRE(job.all_run(0, 256));
  CHECK(!job.said("no node yet"));
  // Four of the gang's pods on each node.
  const std::string lost = job.node_of(0, 37);
  std::set<int> ranks;
  const nlohmann::json all = job.pods(0);
  for (const auto& pod : all)
    if (pod.at("spec").value("nodeName", "") == lost) ranks.insert(FleetJob::rank_of(pod));
  REQUIRE(ranks.contains(37));
  job.cluster().kubectl(
      "delete pod -n gang -l reckon/attempt=0 --force --grace-period=0 "
      "--field-selector spec.nodeName=" +
      lost);
  job.cluster().kubectl("delete node " + lost);
  // 252 have room on 63 nodes.
  REQUIRE(job.comes_to_say("restarting"));
  job.play_nodes("spare", 1, -1);
  REQUIRE(job.all_run(1, 256));
  job.stop_nodes();
  job.play_nodes("node", 64, 1);
  job.play_nodes("spare", 1, 1);
  CHECK(job.code() == 0);
  INFO(job.errors());
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::failure);
  REQUIRE(m.interruptions[0].rank);  // one of those on the node, and none that was ended for it
  CHECK(ranks.contains(*m.interruptions[0].rank));
  REQUIRE(!m.ends.empty());
  CHECK(m.ends.back().finished);
}

TEST_CASE("a quota that only the making of pods meets ends the job with its words", "[.long]") {
  FleetJob job("limited", 2, 8);
  job.play_nodes("node", 2, -1);
  job.cluster().kubectl("apply -f -", R"(apiVersion: v1
kind: ResourceQuota
metadata: {name: memory, namespace: limited}
spec: {hard: {limits.memory: 1Gi}}
)");
  job.start_new("--pending 15s");
  CHECK(job.code() == 1);
  INFO(job.errors());
  CHECK_THAT(job.output(), Contains("has no pod after 15") && Contains("exceeded quota: memory"));
}
