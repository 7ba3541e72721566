#include <map>
#include <set>
#include <thread>

#include "kubernetes/cluster_job.h"

// `reckon run --on kubernetes` with real pods of reckon-worker. What a job ends with must be, bit
// for bit, what it ends with on this machine when nobody disturbs it.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

TEST_CASE("four ranks in pods train what four processes of this machine train", "[.long]") {
  constexpr int kSteps = 300;
  ClusterJob job("ring", kRing, 4, kSteps);
  job.start_new();
  job.ends_well(kSteps);
  const Measurements m = job.measured();
  CHECK(m.runs.size() == 1);
  CHECK(m.interruptions.empty());
  // Each pod's way to its start.
  const auto spans = [&](const char* name) {
    return std::count_if(m.timeline.spans.begin(), m.timeline.spans.end(),
                         [&](const Span& s) { return s.name == name; });
  };
  CHECK(spans("start container") == 4);
  // A second run of the name is refused, with what to do.
  job.start_new();
  CHECK(job.code() == 3);
  CHECK_THAT(job.errors(), Contains("a run 'ring' is in namespace ring already"));
  const Output status = job.reckon("status ring --on kubernetes");
  CHECK_THAT(status.out, Contains("ring: finished, attempt 0"));
}

TEST_CASE("workers and parameter servers in pods train what they train here", "[.long]") {
  constexpr int kSteps = 300, kWorkers = 3, kServers = 2;
  ClusterJob job("servers", "{kind: parameter_server, workers: 3, parameter_servers: 2}", kWorkers,
                 kSteps, kServers);
  constexpr unsigned kEnoughCores = 3;
  if (std::thread::hardware_concurrency() < kEnoughCores) job.ask_for_less();
  job.start_new();
  job.ends_well(kSteps);
}

TEST_CASE("a pod that is deleted by force in mid-run changes no bit of what is trained",
          "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("forced", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  job.kubectl("delete pod " + job.pod_of(2) + " --force --grace-period=0");
  job.ends_well(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].detail == "rank 2 was deleted");
  CHECK(m.runs.size() == 2);
  CHECK(m.runs[1].first_step > 0);  // behind a checkpoint
}

namespace {

/// By rank, of pods that have not failed.
std::map<int, std::string> uids_of(const ClusterJob& job) {
  std::map<int, std::string> uids;
  for (const nlohmann::json& pod : job.pods(0))
    if (pod.at("status").value("phase", "") != "Failed" &&
        !pod.at("metadata").contains("deletionTimestamp"))
      uids[WatchedJob::rank_of(pod)] = pod.at("metadata").at("uid");
  return uids;
}

/// Rank 2's pod is another by now, and the others' are the same.
void check_only_rank_2_is_new(const std::map<int, std::string>& before,
                              const std::map<int, std::string>& after) {
  REQUIRE(before.size() == 4);
  REQUIRE(after.size() == 4);
  for (const int rank : {0, 1, 3}) CHECK(before.at(rank) == after.at(rank));
  CHECK(before.at(2) != after.at(2));
}

}  // namespace

TEST_CASE("in place a pod that is lost is made again alone, and no bit is changed", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("inplace", kRing, 4, kSteps, 0, "  restart: {kind: in_place}\n");
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const auto before = uids_of(job);
  job.kubectl("delete pod " + job.pod_of(2) + " --force --grace-period=0");
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  check_only_rank_2_is_new(before, uids_of(job));
  job.check_parameters();
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].detail == "rank 2 was deleted");
  CHECK(m.interruptions[0].lost_steps <= 1);  // the others held the state
  REQUIRE(m.runs.size() == 2);
  CHECK(m.runs[1].first_step > 0);
}

TEST_CASE("in place a pod that is told to end is made again, whoever watches by then", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("evictedplace", kRing, 4, kSteps, 0, "  restart: {kind: in_place}\n");
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1000); }));
  const auto before = uids_of(job);
  job.kill_launcher();
  job.kubectl("delete pod " + job.pod_of(2));  // SIGTERM, as an eviction is
  job.start("--attach evictedplace");
  const int end = job.code();
  INFO(job.errors());
  REQUIRE(end == 0);
  check_only_rank_2_is_new(before, uids_of(job));
  job.check_parameters();
}

TEST_CASE("an evicted pod saves its work, and the job goes on from there", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("evicted", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1000); }));
  job.kubectl("delete pod " + job.pod_of(1));  // SIGTERM, as an eviction is
  job.ends_well(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 1);
  CHECK(m.interruptions[0].lost_steps == 0);  // an emergency checkpoint was made
}

TEST_CASE("an API server that is away for a while in mid-run is waited for", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("away", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(500); }));
  job.cluster().restart_api_server(5);
  job.ends_well(kSteps);
  CHECK(job.measured().interruptions.empty());  // of the job, none
  CHECK_THAT(job.errors(), Contains("the cluster is away"));
  CHECK_THAT(job.errors(), Contains("the cluster answers again"));
}

TEST_CASE("a launcher that is killed is replaced by another, which goes on watching", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("attached", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(500); }));
  job.kill_launcher();
  job.start("--attach attached");
  REQUIRE(wait_for([&] { return job.has_steps(1000); }));
  job.kill_launcher();
  const Measurements part = job.measured();
  std::set<std::int64_t> told;  // what was there before is not written again
  for (const StepRecord& step : part.steps)
    CHECK((step.rank != 0 || told.insert(step.step).second));
  CHECK(part.runs.size() == 1);
  job.start("--attach attached", "another");  // and another directory, as on another machine
  job.ends_well(kSteps);
  CHECK(job.measured().interruptions.empty());
}

TEST_CASE("a pod that is deleted while nobody watches is to blame, whoever attaches", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("unwatched", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  const std::string deleted = job.pod_of(2);
  job.kill_launcher();
  job.kubectl("delete pod " + deleted + " --force --grace-period=0");
  // Its Job makes another.
  const auto is_replaced = [&] {
    const nlohmann::json pods = job.pods(0);
    return std::ranges::any_of(pods, [&](const nlohmann::json& pod) {
      return WatchedJob::rank_of(pod) == 2 && pod.at("metadata").at("name") != deleted;
    });
  };
  REQUIRE(wait_for(is_replaced));
  job.start("--attach unwatched");
  job.ends_well(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].detail == "rank 2 was deleted while nobody watched");
}

TEST_CASE("a run is stopped behind a checkpoint, shown, resumed, and deleted", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("stopped", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(500); }));
  const Output running = job.reckon("status stopped --on kubernetes");
  CHECK_THAT(running.out, Contains("stopped: running, attempt 0"));
  CHECK_THAT(running.out, Contains("rank 3"));
  CHECK(job.reckon("delete stopped --on kubernetes").code == 1);
  const Output stopped = job.reckon("stop stopped --on kubernetes");
  INFO(stopped.err);
  CHECK(stopped.code == 0);
  CHECK(job.code() == 75);
  job.start("--attach stopped");
  CHECK(job.code() == 75);
  job.start("--attach stopped --resume");
  job.ends_well(kSteps);
  CHECK(job.measured().interruptions.empty());  // what somebody asked for is none
  CHECK(job.reckon("delete stopped --on kubernetes").code == 0);
  CHECK(job.reckon("status stopped --on kubernetes").code == 2);
}

TEST_CASE("each node of a cluster is probed by one worker of the plan, and nothing stays",
          "[.long]") {
  ClusterJob job("probed", kRing, 4, 100);
  const Output probe = job.reckon("probe job.yaml --on kubernetes --steps 20 --image " +
                                  job.cluster().image() + " --out nodes.json");
  INFO(probe.out << probe.err);
  REQUIRE(probe.code == 0);
  CHECK_THAT(probe.out, Contains("node1") && Contains("+0.0 %"));
  CHECK(wait_for([&] { return job.cluster().get("jobs -n probed").at("items").empty(); }));
}

TEST_CASE("pods of a node that is drained are told so, and change no bit of what is trained",
          "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("drained", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1000); }));
  job.cluster().kubectl(
      "drain node1 --ignore-daemonsets --delete-emptydir-data --force --grace-period=30 "
      "--pod-selector=app.kubernetes.io/instance=drained");
  job.cluster().kubectl("uncordon node1");
  job.ends_well(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::maintenance);
  CHECK_THAT(m.interruptions[0].detail, Contains("was evicted: node1 is being drained"));
}
