#include <algorithm>
#include <map>
#include <sstream>

#include "kubernetes/cluster_job.h"

// `reckon run --on kubernetes` of jobs that go on with the pods that are left: spares take ranks.
// Which pod has which rank is read where later launchers read it.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

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

void delete_by_force(const WatchedJob& job, const std::string& pod) {
  job.kubectl("delete pod " + pod + " --force --grace-period=0");
}

}  // namespace

TEST_CASE("a spare pod takes the rank of a lost one, another stands by, and no bit is changed",
          "[.long]") {
  constexpr int kSteps = 3000;
  ClusterJob job("warmspare", kThree, 4, kSteps, 0, kWarmSpare);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const auto before = ranked_pods(job);
  REQUIRE(before.size() == 3);
  delete_by_force(job, before.at(2).name);
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  const auto after = ranked_pods(job);
  REQUIRE(after.size() == 3);
  for (const int rank : {0, 1}) CHECK(before.at(rank).uid == after.at(rank).uid);
  CHECK(after.at(2).uid != before.at(2).uid);
  CHECK_THAT(after.at(2).name, Contains("-spare-"));
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
