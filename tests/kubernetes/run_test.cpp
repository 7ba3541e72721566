#include <signal.h>
#include <catch2/catch.hpp>

#include <memory>
#include <set>
#include <thread>

#include "executor/launch/process.h"
#include "executor/train/measurement_log.h"
#include "kubernetes/cluster.h"
#include "support/small_job.h"

// `reckon run --on kubernetes` with real pods of reckon-worker. What a job ends with must be, bit
// for bit, what it ends with on this machine when nobody disturbs it.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

std::string job_text(const std::string& name, const std::string& strategy, int nodes, int steps,
                     int servers) {
  return small_job(name, strategy, steps) + small_pool(nodes) +
         (servers == 0
              ? ""
              : "    - {name: servers, role: parameter_server, nodes: " + std::to_string(servers) +
                    ", machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}}\n");
}
const std::string kRing = "{kind: multi_worker_mirrored, workers: 4, all_reduce: ring}";
/// In kubectl's place: each pod asks for 440 thousandths of a core, so five do not fit on two
/// cores, and they get by with less.
const char* const kModestKubectl = R"sh(#!/bin/sh
case " $* " in
  *" --filename - "*) sed 's/cpu: "440m"/cpu: "330m"/' | exec kubectl "$@" ;;
  *) exec kubectl "$@" ;;
esac
)sh";

/// One job in a namespace of its own, and what becomes of it on this machine undisturbed.
class ClusterJob {
 public:
  ClusterJob(const std::string& name, const std::string& strategy, int nodes, int steps,
             int servers = 0)
      : cluster_(Cluster::with_node()), space_(cluster_.make_space(name, w_)), name_(name) {
    w_.write("job.yaml", job_text(name, strategy, nodes, steps, servers));
  }
  ~ClusterJob() { cluster_.kubectl("delete namespace " + name_ + " --wait=false"); }
  ClusterJob(const ClusterJob&) = delete;
  ClusterJob& operator=(const ClusterJob&) = delete;

  /// In the background; standard error is appended to `out`.err.
  void start(const std::string& options, const std::string& out = "run") {
    out_ = out;
    process_ = std::make_unique<ChildProcess>(ProcessSpec{
        "reckon",
        {"sh", "-c",
         "cd '" + w_.path("").string() + "' && exec env " + variables_ + cluster_.environment() +
             " '" RECKON_BINARY_DIR "/bin/reckon' run --on kubernetes --replications 20 --out " +
             out + ' ' + options + " > " + out + ".out 2>> " + out + ".err"},
        {},
        {}});
  }
  void ask_for_less() {
    w_.write("modest-kubectl", kModestKubectl);
    fs::permissions(w_.path("modest-kubectl"), fs::perms::owner_all);
    variables_ = "RECKON_KUBECTL='" + w_.path("modest-kubectl").string() + "' ";
  }
  void start_new() {
    start(
        "job.yaml --claim checkpoints --checkpoint-steps 100 --retry-delay 1s --retries 20 "
        "--image " +
        cluster_.image());
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
  std::string errors() const { return read_all(w_.path(out_ + ".err")); }
  Measurements measured() const {
    const auto read = read_measurement_log(w_.path(out_) / "measurements.jsonl");
    REQUIRE(read);
    return *read;
  }
  bool has_steps(std::size_t count) {
    const fs::path file = w_.path(out_) / "measurements.jsonl";
    const std::string text = read_all(file);
    return std::size_t(std::count(text.begin(), text.end(), '\n')) > count || !running();
  }
  /// The pod of a rank in the newest attempt.
  std::string pod_of(int rank) const {
    std::string name;
    const nlohmann::json pods = cluster_.get("pods -n " + name_);
    for (const auto& pod : pods.at("items"))
      if (pod.at("metadata").at("annotations").value("reckon/first-rank", "") ==
          std::to_string(rank))
        name = std::max(name, pod.at("metadata").at("name").get<std::string>());
    return name;
  }
  std::string kubectl(const std::string& words) const {
    return cluster_.kubectl("-n " + name_ + ' ' + words);
  }
  Output reckon(const std::string& words) const { return w_.run(words, cluster_.environment()); }

  /// The same parameters and losses as on this machine, every step once.
  void check_result(int steps) {
    const Output local =
        w_.run("run job.yaml --out local --replications 20 --checkpoint-steps 100");
    INFO(local.err << errors());
    REQUIRE(local.code == 0);
    const std::string expected = read_all(w_.path("local") / "parameters.bin");
    REQUIRE(expected.size() == 5121 * sizeof(float));
    CHECK((read_all(space_.volume / name_ / "parameters.bin") == expected));

    const auto here = read_measurement_log(w_.path("local") / "measurements.jsonl");
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

  const Cluster& cluster() const { return cluster_; }

 private:
  Workspace w_;
  Cluster& cluster_;
  Cluster::Space space_;
  std::string name_, out_ = "run", variables_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace

TEST_CASE("four ranks in pods train what four processes of this machine train", "[.long]") {
  constexpr int kSteps = 300;
  ClusterJob job("ring", kRing, 4, kSteps);
  job.start_new();
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
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
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
}

TEST_CASE("a pod that is deleted by force in mid-run changes no bit of what is trained",
          "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("forced", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1500); }));
  job.kubectl("delete pod " + job.pod_of(2) + " --force --grace-period=0");
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].detail == "rank 2 was deleted");
  CHECK(m.runs.size() == 2);
  CHECK(m.runs[1].first_step > 0);  // behind a checkpoint
}

TEST_CASE("an evicted pod saves its work, and the job goes on from there", "[.long]") {
  constexpr int kSteps = 2000;
  ClusterJob job("evicted", kRing, 4, kSteps);
  job.start_new();
  REQUIRE(wait_for([&] { return job.has_steps(1000); }));
  job.kubectl("delete pod " + job.pod_of(1));  // SIGTERM, as an eviction is
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
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
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
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
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
  CHECK(job.measured().interruptions.empty());
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
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
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
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  job.check_result(kSteps);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].cause == Interruption::maintenance);
  CHECK_THAT(m.interruptions[0].detail, Contains("was evicted: node1 is being drained"));
}
