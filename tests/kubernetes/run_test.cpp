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
  job.measured_with_loss_of(2);
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

namespace {

/// A program in kubectl's place that notes in "acts" who changed what, but for Leases.
std::string noting_kubectl(const Workspace& w, const std::string& who) {
  namespace fs = std::filesystem;
  const std::string name = who + "-kubectl";
  w.write(name,
          "#!/bin/sh\ncase \" $* \" in\n  *\" --validate=false \"*) ;;\n"
          "  *\" create \"* | *\" apply \"* | *\" annotate \"* | *\" patch \"* | "
          "*\" delete \"*) echo " +
              who + " \"$*\" >> '" + w.path("acts").string() + "' ;;\nesac\nexec kubectl \"$@\"\n");
  fs::permissions(w.path(name), fs::perms::owner_all);
  return "RECKON_KUBECTL='" + w.path(name).string() + "' ";
}

}  // namespace

TEST_CASE("a second launcher that stands by takes over when the first is killed, and two never act",
          "[.long]") {
  constexpr int kSteps = 4000;
  ClusterJob job("standby", kRing, 4, kSteps);
  const Workspace& w = job.files();
  BackgroundJob first(w,
                      "job.yaml --replications 20 --claim checkpoints --checkpoint-steps 100 "
                      "--retry-delay 1s --retries 20 --image " +
                          job.cluster().image(),
                      "first", "--on kubernetes",
                      "env " + noting_kubectl(w, "first") + job.cluster().environment(),
                      std::chrono::minutes(40));
  REQUIRE(first.wait_for([&] {
    const std::string text = read_all(w.path("first") / "measurements.jsonl");
    return std::count(text.begin(), text.end(), '\n') > 500;
  }));
  job.set_variables(noting_kubectl(w, "second"));
  job.start("--attach standby", "second");
  REQUIRE(job.comes_to_say("standby is held by the launcher on "));
  CHECK_THAT(job.reckon("status standby --on kubernetes").out,
             Contains("which renewed its lease at"));
  // It stands still, as a machine that sleeps does: to others it is dead, and it comes back.
  first.signal(SIGSTOP);
  REQUIRE(job.comes_to_say("standby is taken over"));
  job.kubectl("delete pod " + job.pod_of(2) + " --force --grace-period=0");
  REQUIRE(job.comes_to_say("attempt 1: 4 pods"));
  first.signal(SIGCONT);
  REQUIRE(
      first.wait_for([&] { return contains(first.errors(), "was taken over by the launcher"); }));
  job.ends_well(kSteps);
  CHECK(first.code() == 0);  // it stood by until the second had ended
  CHECK_THAT(first.output(), Contains("standby: finished"));
  CHECK(job.measured().interruptions.size() == 1);
  const nlohmann::json lease = job.cluster().get("lease standby-launcher -n standby");
  CHECK(lease.at("spec").at("leaseTransitions") == 3);  // the first, the second, the first again
  CHECK(lease.at("spec").value("holderIdentity", "") == "");
  // Behind what the second did first the first did nothing.
  const std::string acts = read_all(w.path("acts"));
  INFO(acts);
  CHECK(acts.starts_with("first"));
  CHECK(acts.find("\nsecond") != std::string::npos);
  CHECK(acts.rfind("\nfirst") < acts.find("\nsecond"));
}

TEST_CASE("status tells what a killed launcher left and what it costs, until it is deleted",
          "[.long]") {
  ClusterJob job("orphan", kRing, 4, 1'000'000);
  job.files().write("job.yaml", small_job("orphan", kRing, 1'000'000) +
                                    "    - {name: here, role: worker, nodes: 4, machine: {vcpu: 1, "
                                    "memory: 2GiB, network: 10Gbps, price: 0.90 USD/h}}\n");
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(200); }));
  const std::string ask = "status --on kubernetes --namespace orphan";
  CHECK_THAT(job.reckon(ask).out, Contains("no run has left anything in orphan"));
  job.kill_launcher();
  REQUIRE(wait_for([&] { return contains(job.reckon(ask).out, "nobody owns any more"); }));
  const Output table = job.reckon(ask);
  INFO(table.out << table.err);
  CHECK_THAT(table.out, Contains("4 Jobs") && Contains("4 pods on node1") &&
                            Contains("no launcher: the launcher on") &&
                            Contains("only pods that nobody owns") &&
                            Contains("0.90 USD an hour in all"));
  const auto answer = nlohmann::json::parse(job.reckon(ask + " --format json").out);
  CHECK(answer.at("leftovers_hourly_usd") == Approx(0.9));
  CHECK(answer.at("leftovers").at(0).at("nodes") == nlohmann::json{"node1"});
  CHECK_THAT(job.reckon("status orphan --on kubernetes").out,
             Contains("--attach orphan` goes on with it"));
  // Nobody holds its lease, so it is stopped from here.
  CHECK(job.reckon("stop orphan --on kubernetes").code == 0);
  const Output stopped = job.reckon(ask);
  INFO(stopped.out);
  CHECK_THAT(stopped.out, Contains("4 ended") && Contains("stopped") && Contains("0.00 USD an"));
  CHECK(job.reckon("delete orphan --on kubernetes").code == 0);
  CHECK(job.cluster().get("leases -n orphan").at("items").empty());
  CHECK(wait_for([&] { return contains(job.reckon(ask).out, "no run has left anything"); }));
}
