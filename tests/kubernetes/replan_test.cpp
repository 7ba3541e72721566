#include <dirent.h>
#include <signal.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "kubernetes/watched_job.h"
#include "sim/measurement/measured_run.h"

// `reckon run --on kubernetes --replan` and `--budget`, with real pods of reckon-worker.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// 512 samples a step, so that a step takes some ten milliseconds of a core.
std::string heavy_job(const std::string& name, int steps, const std::string& price) {
  return "name: " + name +
         "\nworkload:\n"
         "  model: mlp_mnist\n"
         "  dataset: {samples: 60000, bytes_per_sample: 785B}\n"
         "  train: {steps: " +
         std::to_string(steps) +
         "}\n"
         "  precision: fp32\n"
         "  global_batch: 512\n"
         "  strategy: {kind: multi_worker_mirrored, workers: 2}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n"
         "    - {name: here, role: worker, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps, "
         "price: " +
         price + "}, nodes: 2}\n";
}

/// The image is on the node.
const char* const kShortStarts = R"(job_start:
  source: general-knowledge
  image_pull_s: {value: 1s, low: 0.5s, high: 2s}
  framework_start_s: {value: 3s, low: 1s, high: 10s}
)";

class HeavyJob : public WatchedJob {
 public:
  HeavyJob(const std::string& name, int steps, const std::string& price = "1 USD/h")
      : WatchedJob(Cluster::with_node(), name), job_(heavy_job(name, steps, price)) {
    files().write("job.yaml", job_);
  }
  void start_new(const std::string& more) {
    start(
        "job.yaml --replications 40 --claim checkpoints --checkpoint-steps 200 --retry-delay 1s "
        "--retries 20 --image " +
        cluster().image() + ' ' + more);
  }
  std::string host_of(int rank) const {
    return cluster().kubectl("-n " + name() + " get pod " + pod_of(rank) +
                             " -o go-template='{{.spec.hostname}}'");
  }
  /// Of rank 0, under the attempt.
  std::size_t steps_of(std::int64_t attempt) const {
    const Measurements all = measured();
    return std::size_t(std::ranges::count_if(
        all.steps, [&](const StepRecord& s) { return s.rank == 0 && s.attempt == attempt; }));
  }
  /// A catalog "starts" in which the image is on the node.
  void short_starts() {
    std::filesystem::create_directory(files().path("starts"));
    files().write("starts/operations.yaml", kShortStarts);
  }
  bool there() const { return std::filesystem::exists(files().path("run") / "measurements.jsonl"); }
  /// Some steps of so many workers are done, or the launcher has ended.
  bool trains_with(int workers) {
    if (!running()) return true;
    if (!there()) return false;
    const Measurements all = measured();
    return !all.runs.empty() && all.runs.back().workers == workers &&
           steps_of(all.runs.back().attempt) > 5;
  }

 private:
  std::string job_;
};

/// The processes of a pod with this host name, which are processes of this machine.
std::vector<pid_t> processes_of_host(const std::string& host) {
  std::vector<pid_t> ids;
  DIR* const processes = ::opendir("/proc");
  REQUIRE(processes != nullptr);
  while (const dirent* entry = ::readdir(processes)) {
    const pid_t id = std::atoi(entry->d_name);
    if (id <= 0) continue;
    const std::string base = "/proc/" + std::to_string(id);
    if (contains(read_all(base + "/environ"), "HOSTNAME=" + host) &&
        contains(read_all(base + "/comm"), "reckon-worker"))
      ids.push_back(id);
  }
  ::closedir(processes);
  return ids;
}

/// Two thirds of the time the processes stand still.
class SlowedDown {
 public:
  explicit SlowedDown(std::vector<pid_t> ids) : ids_(std::move(ids)), thread_([this] { run(); }) {}
  ~SlowedDown() {
    ends_ = true;
    thread_.join();
  }

 private:
  void all(int number) const {
    for (const pid_t id : ids_) ::kill(id, number);
  }
  void run() const {
    while (!ends_) {
      all(SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      all(SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  const std::vector<pid_t> ids_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

double forecast_of(const WatchedJob& job, const std::string& options) {
  const Output out =
      job.files().run("simulate job.yaml --format json --replications 40 " + options);
  INFO(out.err);
  REQUIRE(out.code == 0);
  return nlohmann::json::parse(out.out).at("time_seconds").at("p50").get<double>();
}

double median_step(const Measurements& measured) {
  std::vector<double> seconds;
  for (const StepRecord& s : measured.steps)
    if (s.rank == 0) seconds.push_back(s.seconds.count());
  REQUIRE(!seconds.empty());
  std::ranges::nth_element(seconds, seconds.begin() + std::ptrdiff_t(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

}  // namespace

TEST_CASE("the whole way: forecast, run, a pod killed, a slow rank, calibrated, and re-planned",
          "[.long]") {
  double step = 0;
  {
    constexpr int kSteps = 1500;
    HeavyJob job("calibrates", kSteps);
    const double first = forecast_of(job, "");
    job.start_new("--replan off");
    REQUIRE(wait_for([&] { return job.has_steps(600); }));
    job.kubectl("delete pod " + job.pod_of(1) + " --force --grace-period=0");
    REQUIRE(job.comes_to_say("attempt 1: 2 pods"));
    REQUIRE(wait_for([&] { return !job.running() || job.steps_of(1) > 20; }));
    {
      const auto slowed = processes_of_host(job.host_of(1));
      REQUIRE(!slowed.empty());
      const SlowedDown slow(slowed);
      CHECK(job.comes_to_say("slow: rank 1 on node "));
    }
    REQUIRE(job.code() == 0);
    const Measurements all = job.measured();
    REQUIRE(all.interruptions.size() == 1);
    CHECK(all.interruptions[0].detail == "rank 1 was deleted");
    REQUIRE(!all.ends.empty());
    const double took = all.ends.back().at.count();
    REQUIRE(all.ends.back().spent);
    CHECK(*all.ends.back().spent >= 2 * took / 3600);
    step = median_step(all);

    const Output fit = job.files().run("calibrate run --out own.yaml --force");
    INFO(fit.out << fit.err);
    REQUIRE(fit.code == 0);
    const double second = forecast_of(job, "--calibration own.yaml");
    INFO("forecast " << first << " s, it took " << took << " s, forecast again " << second << " s");
    CHECK(std::abs(second - took) < std::abs(first - took));
  }

  // What is measured says that two workers do not keep the deadline.
  constexpr double kSeconds = 240, kStart = 12;
  const int steps = int(kSeconds / step);
  HeavyJob job("replans", steps);
  const double deadline = kStart + 0.85 * kSeconds;
  job.start_new("--replan auto --deadline " + std::to_string(int(deadline)) + "s");
  REQUIRE(job.comes_to_say("the run goes on with "));
  REQUIRE(wait_for([&] { return job.trains_with(4) || job.trains_with(3); }));
  const Measurements before = job.measured();
  // Another launcher, elsewhere, goes on under the plan that was decided. What the pods of the
  // first plan did is in the files of the first launcher alone: they are gone, and their logs too.
  job.kill_launcher();
  job.start("--attach replans", "another");
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements all = job.measured();
  REQUIRE(all.decisions.size() >= 1);
  const DecisionRecord& decision = all.decisions.front();
  CHECK(decision.applied);
  CHECK_THAT(decision.what, Contains("more worker"));
  CHECK(decision.kept_miss >= 0.2);
  REQUIRE(decision.miss);
  CHECK(*decision.miss <= decision.kept_miss / 2);
  REQUIRE(before.runs.size() >= 2);
  REQUIRE(!all.runs.empty());
  CHECK(before.runs.front().workers == 2);
  CHECK(all.runs.back().workers > 2);
  CHECK(before.runs.front().plan_digest == decision.planned_digest);
  CHECK(all.runs.back().plan_digest != decision.planned_digest);
  CHECK(all.runs.back().global_batch == before.runs.front().global_batch);
  REQUIRE(all.ends.size() >= 2);
  CHECK(all.ends.front().detail == "goes on with " + decision.what);
  CHECK(all.runs.front().first_step == all.ends.front().steps_done);
  CHECK(all.interruptions.empty());
  CHECK(all.useful_steps().size() == std::size_t(steps - all.ends.front().steps_done));
  CHECK(std::filesystem::exists(job.space().volume / "replans" / "model.safetensors"));
}

TEST_CASE("a decision in a cluster is scored by how that run ended", "[.long]") {
  // Steps of which nothing is known but that they take longer than the deadline has them take.
  constexpr int kSteps = 6000;
  HeavyJob job("scored", kSteps);
  job.start_new("--replan ask --deadline 30s");
  REQUIRE(job.comes_to_say(" to miss "));
  REQUIRE(job.code() == 0);
  const Measurements all = job.measured();
  REQUIRE(!all.decisions.empty());
  CHECK(!all.decisions.front().applied);
  const Output history = job.files().run("history --format json");
  REQUIRE(history.code == 0);
  const auto told = nlohmann::json::parse(history.out).at("forecasts");
  CHECK(std::ranges::any_of(told, [](const nlohmann::json& f) {
    return f.at("kind") == "decision" && !f.at("run_seconds").is_null();
  }));
}

TEST_CASE("what a run in a cluster is told to take goes on so when it is attached to", "[.long]") {
  HeavyJob job("asked", 200'000);
  job.start_new("--replan off");
  REQUIRE(wait_for([&] { return job.has_steps(200); }));
  const Output stopped = job.reckon("stop asked --on kubernetes");
  REQUIRE(stopped.code == 0);
  CHECK(job.code() == 75);
  const std::size_t first = job.steps_of(0);

  const std::string attach = "run --on kubernetes --attach asked --out run ";
  CHECK(job.reckon(attach + "--set cluster.pools.here.nodes=3").code == 2);
  const Output other = job.reckon(attach + "--resume --set workload.optimizer.learning_rate=0.5");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Contains("was trained under other settings"));

  job.start(
      "--attach asked --resume --set cluster.pools.here.nodes=4 --set "
      "'workload.strategy={kind: sharded, workers: 4, zero_stage: 1}'");
  REQUIRE(wait_for([&] { return job.trains_with(4); }));
  CHECK(job.measured().runs.back().first_step == std::int64_t(first));
  const Output again = job.reckon("stop asked --on kubernetes");
  CHECK(again.code == 0);
  CHECK(job.code() == 75);
}

TEST_CASE("a budget stops a run in a cluster behind a checkpoint, before it is passed", "[.long]") {
  constexpr int kBudgetSpent = 4;
  HeavyJob job("dear", 200'000, "3600 USD/h");
  job.short_starts();
  job.start_new("--replan off --catalog starts --budget 200USD");
  CHECK(job.code() == kBudgetSpent);
  INFO(job.errors());
  CHECK_THAT(job.errors(), Contains("go on with: reckon run --on kubernetes --attach dear") &&
                               Contains(" --resume --budget "));
  const Measurements all = job.measured();
  REQUIRE(all.ends.size() == 1);
  const EndRecord& end = all.ends.front();
  CHECK(!end.finished);
  REQUIRE(end.spent);
  CHECK(*end.spent <= 200);
  CHECK(*end.spent > 100);
  CHECK(end.steps_done > 0);
  REQUIRE(!all.checkpoints.empty());
  CHECK(all.checkpoints.back().step == end.steps_done);
  const Output status = job.reckon("status dear --on kubernetes");
  CHECK_THAT(status.out, Contains("dear: stopped: ") && Contains("of the budget of 200.00 USD"));

  // It stays so until there is more money, wherever one asks.
  const std::string attach = "run --on kubernetes --attach dear --out other ";
  CHECK(job.reckon(attach).code == kBudgetSpent);
  const Output poor = job.reckon(attach + "--resume");
  CHECK(poor.code == kBudgetSpent);
  CHECK_THAT(poor.out + poor.err, Contains("a start, one step and its checkpoint would pass it"));
  job.start("--attach dear --resume --budget 400USD");
  REQUIRE(wait_for([&] { return !job.running() || job.measured().runs.size() > 1; }));
  CHECK(job.reckon("stop dear --on kubernetes").code == 0);
  CHECK(job.code() == 75);
  const Measurements more = job.measured();
  REQUIRE(more.ends.size() >= 2);
  CHECK(*more.ends.back().spent > *end.spent);
}
