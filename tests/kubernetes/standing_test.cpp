#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "kubernetes/cluster_job.h"

// `reckon run --on kubernetes` of jobs that go on with the pods that are left: spares take ranks,
// elastic jobs shrink and grow. Which pod has which rank is read where later launchers read it.
using namespace reckon;
using namespace reckon::test;

namespace {

const std::string kThree = "{kind: multi_worker_mirrored, workers: 3, all_reduce: ring}";
const std::string kWarmSpare = "  restart: {kind: warm_spare, spares: 1}\n";

struct RankedPod {
  std::int64_t start = -1;
  std::string name, uid;
};

/// By rank, of the newest start that each was given to.
std::map<int, RankedPod> ranked_pods(const WatchedJob& job) {
  std::map<int, RankedPod> ranks;
  for (const nlohmann::json& pod : job.pods(0)) {
    const nlohmann::json& meta = pod.at("metadata");
    std::istringstream order(meta.at("annotations").value("reckon/start", ""));
    std::int64_t start = -1;
    int rank = -1;
    if (!(order >> start >> rank)) continue;
    RankedPod& newest = ranks[rank];
    if (start > newest.start) newest = {start, meta.at("name"), meta.at("uid")};
  }
  return ranks;
}

/// Of the one pod that has no rank: which it is, the order decides in which the pods came up.
std::string pod_beside(const WatchedJob& job) {
  std::string uid;
  for (const nlohmann::json& pod : job.pods(0)) {
    const nlohmann::json& meta = pod.at("metadata");
    int start = -1, rank = -1;
    std::istringstream order(meta.at("annotations").value("reckon/start", ""));
    if (order >> start >> rank) continue;
    CHECK(uid.empty());
    uid = meta.at("uid");
  }
  return uid;
}

void delete_by_force(const WatchedJob& job, const std::string& pod) {
  job.kubectl("delete pod " + pod + " --force --grace-period=0");
}

/// Accelerators that the cluster's one node says that it has, for as long as this lives; what runs
/// there finds none, and computes on the CPU.
class SaidAccelerators {
 public:
  SaidAccelerators(const Cluster& cluster, int count)
      : cluster_(cluster), node_(cluster.get("nodes").at("items").at(0).at("metadata").at("name")) {
    say('"' + std::to_string(count) + '"');
    REQUIRE(wait_for([&] {
      return cluster_.get("node " + node_)
          .at("status")
          .at("allocatable")
          .contains("nvidia.com/gpu");
    }));
  }
  ~SaidAccelerators() { say("null"); }
  SaidAccelerators(const SaidAccelerators&) = delete;
  SaidAccelerators& operator=(const SaidAccelerators&) = delete;

 private:
  void say(const std::string& count) const {
    cluster_.kubectl("patch node " + node_ + " --subresource=status --type=merge --patch " +
                     "'{\"status\": {\"capacity\": {\"nvidia.com/gpu\": " + count + "}}}'");
  }
  const Cluster& cluster_;
  std::string node_;
};

}  // namespace

TEST_CASE("a spare pod takes the rank of a lost one, another stands by, and no bit is changed",
          "[.long]") {
  constexpr int kSteps = 3000;
  ClusterJob job("warmspare", kThree, 4, kSteps, 0, kWarmSpare);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const auto before = ranked_pods(job);
  REQUIRE(before.size() == 3);
  const std::string beside = pod_beside(job);
  delete_by_force(job, before.at(2).name);
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  const auto after = ranked_pods(job);
  REQUIRE(after.size() == 3);
  for (const int rank : {0, 1}) CHECK(before.at(rank).uid == after.at(rank).uid);
  CHECK(after.at(2).uid == beside);
  job.check_parameters();
  const Measurements m = job.measured_with_loss_of(2);
  CHECK(m.runs[1].workers == 3);
  // What the spare printed in that rank is that rank's.
  const auto has_rank = [](int rank) {
    return [rank](const StepRecord& s) { return s.attempt == 1 && s.rank == rank; };
  };
  for (const int rank : {0, 1, 2}) CHECK(std::ranges::any_of(m.steps, has_rank(rank)));
}

TEST_CASE("a spare pod takes a rank that was lost while nobody watched, whoever attaches",
          "[.long]") {
  constexpr int kSteps = 3000;
  ClusterJob job("warmattach", kThree, 4, kSteps, 0, kWarmSpare);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const auto before = ranked_pods(job);
  REQUIRE(before.size() == 3);
  job.kill_launcher();
  delete_by_force(job, before.at(0).name);  // the one that the others meet at
  job.start("--attach warmattach");
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  const auto after = ranked_pods(job);
  for (const int rank : {1, 2}) CHECK(before.at(rank).uid == after.at(rank).uid);
  CHECK(before.at(0).uid != after.at(0).uid);
  job.check_parameters();
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 0);
  CHECK(m.interruptions[0].detail == "rank 0 was deleted while nobody watched");
}

TEST_CASE(
    "an elastic job goes on with fewer pods at once, and is whole again when a new one is "
    "ready",
    "[.long]") {
  constexpr int kSteps = 12'000;
  // At the learning rate of the model's recipe rounding grows in so many steps until undisturbed
  // runs of four and of two workers are nothing alike; at this one their losses differ by 4e-5.
  ClusterJob job("elastic", kRing, 4, kSteps, 0,
                 "  optimizer: {learning_rate: 0.0001}\n"
                 "  restart: {kind: elastic, min: 2}\n");
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const auto before = ranked_pods(job);
  REQUIRE(before.size() == 4);
  delete_by_force(job, before.at(2).name);
  REQUIRE(job.comes_to_say("a pod is ready to join: the ranks regroup behind the step"));
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  const Measurements m = job.measured();
  REQUIRE(m.runs.size() == 3);
  CHECK(m.runs[0].workers == 4);
  CHECK(m.runs[1].workers == 3);
  CHECK(m.runs[2].workers == 4);
  CHECK(m.runs[1].first_step > 0);
  CHECK(m.runs[2].first_step > m.runs[1].first_step);
  CHECK(m.runs[1].global_batch == m.runs[0].global_batch);
  REQUIRE(m.interruptions.size() == 1);  // to grow is none
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].lost_steps <= 1);
  // The same samples in each step, in another order of sums: a batch of 32 with a sample lost or
  // doubled has a loss that differs by percents.
  const Output local = job.files().run("run job.yaml --out local --replications 20");
  INFO(local.err);
  REQUIRE(local.code == 0);
  const auto here = read_measurement_log(job.files().path("local") / "measurements.jsonl");
  REQUIRE(here);
  const auto useful = m.useful_steps(), reference = here->useful_steps();
  REQUIRE(useful.size() == std::size_t(kSteps));
  REQUIRE(reference.size() == std::size_t(kSteps));
  double worst = 0;
  for (std::size_t k = 0; k < useful.size(); ++k) {
    REQUIRE(useful[k].step == reference[k].step);
    worst = std::max(worst, std::abs(useful[k].loss.value() / reference[k].loss.value() - 1));
  }
  CHECK(worst < 1e-3);
  const auto expected = trained_weights(job.files().path("local") / "model.safetensors");
  const auto trained = trained_weights(job.space().volume / "elastic" / "model.safetensors");
  REQUIRE(trained.size() == expected.size());
  double apart = 0, largest = 0;
  for (std::size_t k = 0; k < trained.size(); ++k) {
    apart = std::max(apart, std::abs(double{trained[k]} - double{expected[k]}));
    largest = std::max(largest, std::abs(double{expected[k]}));
  }
  INFO("losses apart " << worst << ", weights " << apart << " of " << largest);
  CHECK(apart < 1e-2 * largest);
}

TEST_CASE("pods of two ranks each go on in place, and an elastic job of them shrinks and grows",
          "[.long]") {
  constexpr int kSteps = 6000;
  const std::string kind = GENERATE("in_place", "elastic");
  const std::string name = "tworanks" + kind.substr(0, 2);
  ClusterJob job(name, "{}", 1, kSteps);
  const SaidAccelerators accelerators(job.cluster(), 4);
  job.files().write(
      "job.yaml",
      small_job(name, "{kind: multi_worker_mirrored}", kSteps,
                "  optimizer: {learning_rate: 0.0001}\n  restart: {kind: " + kind + "}\n") +
          "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, accelerator: "
          "{type: T4, count: 2}, nodes: 2}\n");
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const auto before = ranked_pods(job);
  REQUIRE(before.size() == 2);
  delete_by_force(job, before.at(1).name);
  if (kind == "elastic")
    REQUIRE(job.comes_to_say("a pod is ready to join: the ranks regroup behind the step"));
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  const auto after = ranked_pods(job);
  CHECK(before.at(0).uid == after.at(0).uid);
  CHECK(before.at(1).uid != after.at(1).uid);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].detail == "worker 1 (ranks 2 to 3) was deleted");
  CHECK(m.interruptions[0].lost_steps <= 1);
  if (kind == "in_place") {
    CHECK(m.runs.size() == 2);
    return job.check_parameters();
  }
  REQUIRE(m.runs.size() == 3);
  CHECK((m.runs[0].workers == 2 && m.runs[1].workers == 1 && m.runs[2].workers == 2));
  for (const int rank : {0, 1, 2, 3})
    CHECK(std::ranges::any_of(
        m.steps, [&](const StepRecord& s) { return s.attempt > 1 && s.rank == rank; }));
}
