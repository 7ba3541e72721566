#include <signal.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <set>

#include "executor/launch/process.h"
#include "executor/train/measurement_log.h"
#include "kubernetes/cluster.h"

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

/// A job on fake nodes, watched in the background.
class FleetJob {
 public:
  FleetJob(const std::string& name, int nodes, int gpus_each)
      : cluster_(Cluster::Parts::control_plane), name_(name) {
    cluster_.make_space(name, w_);
    w_.write("job.yaml", gpu_job(name, nodes, gpus_each));
    w_.write("lost", "");
  }

  /// `seconds`: how long a pod runs; negative: until its node is told otherwise.
  void play_nodes(const std::string& prefix, int count, int seconds) {
    nodes_.push_back(std::make_unique<ChildProcess>(ProcessSpec{
        "fake-nodes",
        {"sh", "-c",
         "exec " + cluster_.fake_nodes() + " --nodes " + std::to_string(count) + " --prefix " +
             prefix + " --run " + std::to_string(seconds) + " --lost-file '" +
             w_.path("lost").string() + "' > '" + w_.path(prefix + ".log").string() + "' 2>&1"},
        {},
        {}}));
    REQUIRE(wait_for([&] { return contains(read_all(w_.path(prefix + ".log")), "registered"); }));
    if (seconds >= 0) return;
    // Before a job asks for room: nodes that are ready are tainted as if they were not for a while.
    const auto all_ready = [&] {
      const nlohmann::json all = cluster_.get("nodes").at("items");
      return count == std::count_if(all.begin(), all.end(), [&](const nlohmann::json& node) {
               const std::string name = node.at("metadata").value("name", "");
               return name.starts_with(prefix + '-') && !node.at("spec").contains("taints");
             });
    };
    REQUIRE(wait_for(all_ready));
  }
  void stop_nodes() { nodes_.clear(); }
  void lose(const std::string& node) { w_.write("lost", node + "\n"); }

  void start(const std::string& more = "") {
    process_ = std::make_unique<ChildProcess>(ProcessSpec{
        "reckon",
        {"sh", "-c",
         "cd '" + w_.path("").string() + "' && exec env " + cluster_.environment() +
             " '" RECKON_BINARY_DIR "/bin/reckon' run job.yaml --on kubernetes --replications 20 "
             "--claim checkpoints --retry-delay 1s --out run " +
             more + " > run.out 2> run.err"},
        {},
        {}});
  }
  bool running() { return !process_->poll_end(); }
  int code() {
    bool ended = false;
    for (int k = 0; k < 5 && !ended; ++k) ended = wait_for([&] { return !running(); });
    INFO(errors());
    REQUIRE(ended);
    const ProcessEnd end = *process_->poll_end();
    return end.signal != 0 ? 128 + end.signal : end.code;
  }
  std::string errors() const { return read_all(w_.path("run.err")); }
  bool said(const std::string& text) { return contains(errors(), text) || !running(); }
  /// kubectl asks five times a second, and there may be hundreds of objects.
  bool comes_to_say(const std::string& text) {
    for (int k = 0; k < 5; ++k)
      if (wait_for([&] { return said(text); })) return running();
    return false;
  }
  nlohmann::json pods(int attempt) const {
    return cluster_.get("pods -n " + name_ + " -l reckon/attempt=" + std::to_string(attempt))
        .at("items");
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
      UNSCOPED_INFO(there << " pods of attempt " << attempt << " run\n"
                          << read_all(w_.path("run.out")) << errors());
    return there == count;
  }
  std::string node_of(int attempt, int rank) const {
    const nlohmann::json all = pods(attempt);
    for (const auto& pod : all)
      if (pod.at("metadata").at("annotations").value("reckon/first-rank", "") ==
          std::to_string(rank))
        return pod.at("spec").value("nodeName", "");
    return "";
  }
  void kubectl(const std::string& words) const { cluster_.kubectl(words); }
  const Cluster& cluster() const { return cluster_; }
  const Workspace& files() const { return w_; }
  Measurements measured() const {
    const auto read = read_measurement_log(w_.path("run") / "measurements.jsonl");
    REQUIRE(read);
    return *read;
  }

 private:
  Workspace w_;
  Cluster cluster_;
  std::string name_;
  std::vector<std::unique_ptr<ChildProcess>> nodes_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace

TEST_CASE("a node that falls silent is a lost node, and the gang starts again without it",
          "[.long]") {
  FleetJob job("silent", 2, 8);
  job.play_nodes("node", 3, -1);
  job.start();
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
  CHECK(m.interruptions[0].detail == "rank 1 " + lost + " is lost");
}

TEST_CASE("a spot node that is taken back is a preemption, and the job waits for another",
          "[.long]") {
  FleetJob job("spot", 2, 8);
  job.play_nodes("first", 2, -1);
  job.start();
  REQUIRE(job.all_run(0, 2));
  // As a cloud does it: a taint that says so, the pods are ended, and a while later the node is
  // gone.
  const std::string node = job.node_of(0, 0);
  job.kubectl("taint node " + node + " cloud.google.com/impending-node-termination=:NoSchedule");
  job.kubectl("delete pod -n spot -l reckon/attempt=0 --field-selector spec.nodeName=" + node);
  REQUIRE(job.comes_to_say("starting again"));
  job.kubectl("delete node " + node);
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
  CHECK(m.interruptions[0].detail == "rank 0 " + node + " was taken back or shut down");
}

TEST_CASE("a gang of 256 pods on 64 nodes of 8 GPUs runs, loses a node, runs again and ends",
          "[.long]") {
  FleetJob job("gang", 256, 2);
  job.play_nodes("node", 64, -1);
  job.start("--pending 30min");
  REQUIRE(job.all_run(0, 256));
  CHECK(!job.said("no node yet"));
  // Four of the gang's pods on each node.
  const std::string lost = job.node_of(0, 37);
  std::set<int> ranks;
  const nlohmann::json all = job.pods(0);
  for (const auto& pod : all)
    if (pod.at("spec").value("nodeName", "") == lost)
      ranks.insert(std::stoi(
          pod.at("metadata").at("annotations").at("reckon/first-rank").get<std::string>()));
  REQUIRE(ranks.contains(37));
  job.kubectl(
      "delete pod -n gang -l reckon/attempt=0 --force --grace-period=0 "
      "--field-selector spec.nodeName=" +
      lost);
  job.kubectl("delete node " + lost);
  // 252 have room on 63 nodes.
  REQUIRE(job.comes_to_say("starting again"));
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
  job.start("--pending 15s");
  CHECK(job.code() == 1);
  INFO(job.errors());
  CHECK_THAT(read_all(job.files().path("run.out")),
             Contains("has no pod after 15") && Contains("exceeded quota: memory"));
}
