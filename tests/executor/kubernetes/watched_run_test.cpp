#include <catch2/catch.hpp>

#include <algorithm>

#include "executor/kubernetes/fake_kubectl.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/launch/progress_readers.h"
#include "executor/launch/run_folder.h"
#include "executor/train/records/measurement_log.h"
#include "support/plans.h"
#include "support/pod_of_job.h"

// A run in a cluster that a program of the shell plays: its pods are there when they are asked for,
// print what the test says, and end when they are told to.
using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

constexpr int kPods = 3;

// Files of attempt N: pods-N (list), log-N-RANK, gone-N (events of the pods that were told to end),
// lost-N (events when one was deleted by node), dies-LOG (its connection does, without a word);
// jobs, nodes, all-pods. In `said`: what was asked.
const char* const kClusterOfJob = R"sh(
echo "$*" >> said
of() { sed -n 's/.*attempt\(=\|%3D\)\([0-9]\).*/\2/p'; }
attempt=$(echo "$*" | of)
case "$*" in
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*watch=1*)
    lost=
    until [ -e ended-$attempt ]; do
      if [ -z "$lost" ] && [ -e deleted-$attempt ]; then lost=1; cat lost-$attempt; fi
      sleep 0.02
    done
    cat gone-$attempt
    exec sleep 30 ;;
  *"raw /api/v1/pods") cat all-pods ;;
  *"delete pod"*) touch deleted-$attempt ;;
  *pods*) cat pods-$attempt ;;
  *logs*--tail=1*) log=$(echo "$*" | sed 's/.*job-\([0-9]\)-worker-\([0-9]\).*/log-\1-\2/')
    tail -n 1 $log ;;
  *logs*) log=$(echo "$*" | sed 's/.*job-\([0-9]\)-worker-\([0-9]\).*/log-\1-\2/')
    n=${log#log-}; n=${n%-*}
    if [ -e dies-$log ]; then  # its first connection, behind some lines
      rm dies-$log; head -n 3 $log; exec sleep 30
    fi
    cat $log
    until [ -e ended-$n ] || [ -e deleted-$n ] || [ -e done-$n ]; do sleep 0.05; done ;;
  *"get jobs"*) cat jobs | sed "s/ATTEMPT/${attempt:-0}/g" ;;
  *"patch --filename"*) cat > patched; touch ended-$(grep -o 'attempt":"[0-9]' patched | head -1 |
    sed 's/.*"//') ;;
  *"get nodes"*) cat nodes ;;
  *"get node "*) echo '{"metadata": {"name": "n"}, "status": {"conditions": [
    {"type": "Ready", "status": "True"}]}}' ;;
  *"get configmap"*) echo '{"metadata": {"annotations": {"reckon/phase": "running"}}}' ;;
  *"--filename"*) cat > /dev/null ;;
esac
)sh";

Json watched_pod(int attempt, int rank, bool done) {
  return pod_of_job("job", attempt, rank, done);
}

std::string gone(const Json& pod) {
  return Json{{"type", "DELETED"}, {"object", pod}}.dump() + '\n';
}

std::string log_of(const std::vector<std::string>& lines, std::size_t second = 10) {
  std::string text;
  for (std::size_t k = 0; k < lines.size(); ++k)
    text += "2026-11-22T03:00:" + std::to_string(second + k / 10) + '.' + std::to_string(k % 10) +
            "Z " + lines[k] + '\n';
  return text;
}

/// A rank of reckon-worker that takes `steps` steps, each 1 s, of which `own` are its own.
std::string steps_of(int attempt, int rank, int steps, Seconds own) {
  std::vector<std::string> lines;
  if (rank == 0) {
    RunRecord run;
    run.attempt = attempt;
    lines.push_back(to_json(run));
  }
  for (int step = 0; step < steps; ++step)
    lines.push_back(to_json(StepRecord{.attempt = attempt,
                                       .rank = rank,
                                       .step = step,
                                       .at = Seconds{double(step)},
                                       .seconds = Seconds{1},
                                       .compute = own,
                                       .samples = 64}));
  return log_of(lines);
}

Json worker_node(int number) {
  return {{"metadata", {{"name", "node-" + std::to_string(number)}}},
          {"status",
           {{"allocatable", {{"cpu", "2"}, {"memory", "8Gi"}, {"pods", "20"}}},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

struct WatchedInCluster {
  RunEnd end;
  std::string messages, said;
  Measurements measured;
  const InterruptionRecord& interruption() const {
    REQUIRE(measured.interruptions.size() == 1);
    return measured.interruptions.front();
  }
};

/// A job of three workers of a pod each, one a node, whose first attempt prints `logs`; the second
/// finishes at once.
class ClusterJob {
 public:
  explicit ClusterJob(std::vector<std::string> logs, int nodes = kPods) : fake_(kClusterOfJob) {
    std::vector<Json> running, done, machines;
    for (int rank = 0; rank < kPods; ++rank) {
      running.push_back(watched_pod(0, rank, false));
      done.push_back(watched_pod(1, rank, true));
      fake_.write("log-0-" + std::to_string(rank), logs[std::size_t(rank)]);
      fake_.write("log-1-" + std::to_string(rank), "");
    }
    for (int k = 0; k < nodes; ++k) machines.push_back(worker_node(k));
    fake_.write("pods-0", list_of(running));
    fake_.write("pods-1", list_of(done));
    fake_.write("done-1", "");
    fake_.write("gone-1", "");
    fake_.write("gone-0", gone(running[0]) + gone(running[1]) + gone(running[2]));
    fake_.write("lost-0", gone(running[2]) + gone(running[0]) + gone(running[1]));
    fake_.write("nodes", list_of(machines));
    fake_.write("all-pods", list_of({}));
    const Json job = {
        {"metadata", {{"name", "job"}, {"labels", {{"reckon/attempt", "ATTEMPT"}}}}},
        {"spec",
         {{"parallelism", 1},
          {"template",
           {{"metadata", {{"labels", {{"app.kubernetes.io/component", "worker"}}}}},
            {"spec",
             {{"containers",
               {{{"name", "main"},
                 {"resources", {{"requests", {{"cpu", "2"}, {"memory", "1Gi"}}}}}}}}}}}}}}};
    fake_.write("jobs", list_of({job, job, job}));
    options.state.run = "job";
    options.files.directory.root = folder_.path() / "run";
    options.manifests = [](std::int64_t) { return std::string("manifests"); };
    options.retry = {1, 10ms, 40ms, false};
    options.notice = 1s;
    plan.jobs.front().steps = 1000;
    plan.job_start.framework_start = Fact<Seconds>{Seconds{30}};
  }

  WatchedInCluster run() {
    Forecast forecast;
    forecast.scenario = "round";
    forecast.steps = plan.jobs.front().steps;
    forecast.step.step = 1s;
    forecast.times_seconds = {900, 1000, 1100};
    forecast.step_factors = {0.9, 1, 1.1};
    forecast.start_seconds = {0, 0, 0};
    WatchedInCluster w;
    observer.run.message = [&](const std::string& text) { w.messages += text + '\n'; };
    const Kubectl kubectl = fake_.kubectl();
    const auto until = std::chrono::steady_clock::now() + 60s;
    const auto stop = [&] {  // only where it never ends
      const bool late = std::chrono::steady_clock::now() > until;
      return late ? StopRequest::at_once : stops ? stops(w) : StopRequest::none;
    };
    w.end = run_on_kubernetes(plan, forecast, kubectl, options, observer, stop);
    w.said = fake_.read("said");
    w.measured = read_measurement_log(options.files.directory.measurements()).value();
    return w;
  }

  void write(const std::string& file, const std::string& text) const { fake_.write(file, text); }

  Plan plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, kPods);
  KubernetesRunOptions options;
  KubernetesObserver observer;
  std::function<StopRequest(const WatchedInCluster&)> stops;

 private:
  static std::string list_of(std::vector<Json> items) {
    return Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", std::move(items)}}.dump();
  }

  FakeKubectl fake_;
  RunFolder folder_;
};

ClusterJob job_with_slow_rank(int nodes) {
  return ClusterJob({steps_of(0, 0, 30, 500ms), steps_of(0, 1, 30, 500ms), steps_of(0, 2, 30, 1s)},
                    nodes);
}

const char* const kSlow =
    "rank 2 on node node-2 takes 1.00 s for its own part of a step, 2.0 times what the other 2 "
    "ranks like it take";

}  // namespace

TEST_CASE("pods that tell of steps and then of none are ended, and the job starts again") {
  ClusterJob job({steps_of(0, 0, 5, 1s), steps_of(0, 1, 5, 1s), steps_of(0, 2, 5, 1s)});
  job.options.patience = {.step = Seconds{1}};
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 2);
  CHECK(w.interruption().cause == Interruption::failure);
  CHECK(w.interruption().detail == "no step was told for 1.00 s behind step 5");
  CHECK(w.interruption().lost_steps == 5);
  CHECK(!w.interruption().rank);
  // It is written into the cluster before the pods are ended.
  CHECK(w.said.find("patch configmap") < w.said.find("patch --filename"));
}

TEST_CASE("a program of the user's own that hangs in its pods is ended, one that is mute is not") {
  const bool tells = GENERATE(true, false);
  const std::string line = tells ? "step " : "at ";
  ClusterJob job({log_of({line + "1/1000", line + "2/1000"}), "", ""});
  job.options.foreign = reader_of({});
  job.options.patience = {.step = Seconds{1}};
  if (!tells) {
    const auto begin = std::chrono::steady_clock::now();
    job.stops = [=](const auto&) {
      return std::chrono::steady_clock::now() - begin > 4s ? StopRequest::graceful
                                                           : StopRequest::none;
    };
  }
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  if (tells) {
    CHECK(w.end.end.verdict == Verdict::finished);
    CHECK(w.interruption().detail == "no step was told for 1.00 s behind step 2");
  } else {
    CHECK(w.end.end.verdict == Verdict::stopped);
    CHECK(w.measured.interruptions.empty());
  }
}

TEST_CASE("a log whose connection died without a word is read anew before its pods hang") {
  std::vector<std::string> later;
  for (int step = 3; step <= 20; ++step) later.push_back("step " + std::to_string(step) + "/20");
  ClusterJob job({log_of({"hello", "step 1/20", "step 2/20"}) + log_of(later, 40), "", ""});
  job.plan.jobs.front().steps = 20;
  job.options.foreign = reader_of({});
  job.options.patience = {.step = Seconds{1}};
  job.write("log-0-1", log_of({"a", "b", "c"}));
  job.write("log-0-2", log_of({"a", "b", "c"}));
  job.write("dies-log-0-0", "");
  std::int64_t done = 0;
  job.observer.run.status = [&](const RunStatus& status) { done = status.steps_done; };
  job.stops = [&](const auto&) { return done == 20 ? StopRequest::graceful : StopRequest::none; };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(done == 20);
  CHECK_THAT(w.said, Contains("--tail=1"));
  CHECK(w.measured.interruptions.empty());
}

TEST_CASE("the node of a slow rank is cordoned where another has room, as the decision says") {
  ClusterJob job = job_with_slow_rank(kPods + 1);
  job.options.cordon_slow = true;
  RunEnds then;
  job.observer.decides = [&](DecisionRecord& d, const RunStatus& now, const RunEnds& ends) {
    then = ends;
    d.kept_p50 = Seconds{now.estimate.time_seconds.p50};
    d.p50 = Seconds{ends.times[1]};
  };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK_THAT(w.messages, Contains(std::string("slow: ") + kSlow));
  CHECK_THAT(w.messages, Contains("node node-2 is cordoned ('kubectl uncordon node-2' takes it "
                                  "back), and its pod ends behind a checkpoint"));
  CHECK(w.said.find("annotate configmap job-run --overwrite reckon/cordoned-in=0") <
        w.said.find("cordon node-2"));
  CHECK_THAT(w.said, Contains("cordon node-2") &&
                         Contains("annotate node node-2 --overwrite reckon/cordoned-by=ns/job") &&
                         Contains("--field-selector spec.nodeName=node-2"));
  REQUIRE(w.measured.decisions.size() == 1);
  const DecisionRecord& decision = w.measured.decisions.front();
  CHECK(decision.applied);
  CHECK(decision.what == std::string("node node-2 cordoned and its pod replaced: ") + kSlow);
  CHECK(decision.changes.empty());
  // Steps of 1 s become steps of half a second, behind a start of 30 s.
  REQUIRE(then.times.size() == 3);
  REQUIRE(decision.p50);
  CHECK(*decision.p50 < decision.kept_p50);
  CHECK(*decision.p50 > 0.5 * decision.kept_p50 + 30s);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 2);
}

TEST_CASE("a rank whose log is read first is not slow where all were slow in the same steps") {
  // Rank 0 became slow with all others, of which the first steps alone are read yet.
  const auto slows_down = [](int rank, int steps) {
    std::string log = steps_of(0, rank, std::min(steps, 40), 500ms);
    for (int step = 40; step < steps; ++step)
      log += log_of({to_json(StepRecord{.rank = rank,
                                        .step = step,
                                        .at = Seconds{double(step)},
                                        .seconds = Seconds{1},
                                        .compute = 1s,
                                        .samples = 64})},
                    std::size_t(step - 20));
    return log;
  };
  ClusterJob job({slows_down(0, 80), slows_down(1, 30), slows_down(2, 30)});
  std::int64_t done = 0;
  job.observer.run.status = [&](const RunStatus& status) { done = status.steps_done; };
  job.stops = [&](const auto&) { return done == 80 ? StopRequest::graceful : StopRequest::none; };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(done == 80);
  CHECK_THAT(w.messages, !Contains("slow: "));
}

TEST_CASE("a slow rank stays where no other node has room for it, and that is said") {
  ClusterJob job = job_with_slow_rank(kPods);
  job.options.cordon_slow = true;
  job.stops = [](const WatchedInCluster& w) {
    const bool told = w.messages.find("cordoned") != std::string::npos;
    return told ? StopRequest::graceful : StopRequest::none;
  };
  SECTION("of a fixed pool") {
    const WatchedInCluster w = job.run();
    INFO(w.messages << w.said);
    CHECK_THAT(w.messages, Contains(std::string("slow: ") + kSlow) &&
                               Contains("node node-2 is not cordoned: no other node is known to "
                                        "have room for its pod"));
    CHECK_THAT(w.said, !Contains("cordon node-2") && !Contains("delete pod"));
    CHECK(w.measured.decisions.empty());
  }
  SECTION("an autoscaler makes a node") {
    job.plan.pools.front().autoscaling = true;
    const WatchedInCluster w = job.run();
    INFO(w.messages << w.said);
    CHECK_THAT(w.said, Contains("cordon node-2") && Contains("delete pod"));
    CHECK(w.measured.decisions.size() == 1);
  }
}

TEST_CASE("behind a launcher that cordoned a node in an attempt no second one is in the same") {
  ClusterJob job = job_with_slow_rank(kPods + 1);
  job.options.cordon_slow = true;
  const std::int64_t before = GENERATE(0, 1);
  job.options.state.cordoned_in = before;  // 1: of a later attempt than this one
  job.stops = [](const WatchedInCluster& w) {
    return w.messages.find("slow: ") != std::string::npos ? StopRequest::graceful
                                                          : StopRequest::none;
  };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK_THAT(w.messages, Contains(std::string("slow: ") + kSlow));
  CHECK((w.said.find("cordon node-2") != std::string::npos) == (before != 0));
}

TEST_CASE("of a large job it is said how many ranks are compared for slowness") {
  ClusterJob job({"", "", ""});
  job.plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 70, 2);
  job.stops = [](const auto&) { return StopRequest::at_once; };
  const std::string messages = job.run().messages;
  CHECK_THAT(messages,
             Contains("the logs of 64 of 70 workers are read: 128 of 140 ranks are compared "
                      "for slowness"));
}
