#pragma once
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/kubernetes/fake_kubectl.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/launch/run_folder.h"
#include "executor/train/records/measurement_log.h"
#include "support/plans.h"
#include "support/pod_of_job.h"

// A run in a cluster that a program of the shell plays: its pods are there when they are asked for,
// print what the test says, and end when they are told to.
namespace reckon::test {

using namespace kubernetes;
using namespace std::chrono_literals;

inline constexpr int kPods = 3;

// Files of attempt N: pods-N (list), log-N-RANK, gone-N (events of the pods that were told to end),
// lost-N (events when one was deleted by node), dies-LOG (its connection does, without a word),
// refused-N (why its pods may not be listed), not-made-N (likewise applied, without which they are
// there); jobs, nodes, all-pods; state-lives: so often the run's state is there. In `said`: what
// was asked; in `made`: how many attempts were applied.
inline const char* const kClusterOfJob = R"sh(
echo "$*" >> said
of() { sed -n 's/.*attempt\(=\|%3D\)\([0-9]\).*/\2/p'; }
attempt=$(echo "$*" | of)
case "$*" in
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*limit=0*) if [ -e refused-$attempt ]; then cat refused-$attempt >&2; exit 1; fi
    cat pods-$attempt ;;
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
  *"get configmap"*)
    n=$(cat asked-state 2>/dev/null || echo 0); echo $((n + 1)) > asked-state
    if [ $n = "$(cat state-lives 2>/dev/null)" ]; then
      echo 'Error from server (NotFound): configmaps "job-run" not found' >&2; exit 1
    fi
    echo '{"metadata": {"annotations": {"reckon/phase": "running"}}}' ;;
  *"apply --filename"*) cat > /dev/null; n=$(cat made 2>/dev/null || echo 0)
    echo $((n + 1)) > made
    if [ -e not-made-$n ]; then cat not-made-$n >&2; exit 1; fi ;;
  *"--filename"*) cat > /dev/null ;;
esac
)sh";

inline Json watched_pod(int attempt, int rank, bool done) {
  return pod_of_job("job", attempt, rank, done);
}

inline std::string gone(const Json& pod) {
  return Json{{"type", "DELETED"}, {"object", pod}}.dump() + '\n';
}

inline std::string log_of(const std::vector<std::string>& lines, std::size_t second = 10) {
  std::string text;
  for (std::size_t k = 0; k < lines.size(); ++k)
    text += "2026-11-22T03:00:" + std::to_string(second + k / 10) + '.' + std::to_string(k % 10) +
            "Z " + lines[k] + '\n';
  return text;
}

/// A rank of reckon-worker that takes `steps` steps, each 1 s, of which `own` are its own.
inline std::string steps_of(int attempt, int rank, int steps, Seconds own) {
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

inline Json worker_node(int number) {
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
/// and the third finish at once.
class ClusterJob {
 public:
  explicit ClusterJob(std::vector<std::string> logs, int nodes = kPods) : fake_(kClusterOfJob) {
    std::vector<Json> running, done, done_later, machines;
    for (int rank = 0; rank < kPods; ++rank) {
      running.push_back(watched_pod(0, rank, false));
      done.push_back(watched_pod(1, rank, true));
      done_later.push_back(watched_pod(2, rank, true));
      fake_.write("log-0-" + std::to_string(rank), logs[std::size_t(rank)]);
      for (const char* log : {"log-1-", "log-2-"}) fake_.write(log + std::to_string(rank), "");
    }
    for (int k = 0; k < nodes; ++k) machines.push_back(worker_node(k));
    fake_.write("pods-0", list_of(running));
    fake_.write("pods-1", list_of(done));
    fake_.write("pods-2", list_of(done_later));
    for (const char* file : {"done-1", "gone-1", "done-2", "gone-2"}) fake_.write(file, "");
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
    forecast.rates = rates;
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
  std::string read(const std::string& file) const { return fake_.read(file); }

  Plan plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, kPods);
  KubernetesRunOptions options;
  std::optional<RunRates> rates;
  KubernetesObserver observer;
  std::function<StopRequest(const WatchedInCluster&)> stops;

 private:
  static std::string list_of(std::vector<Json> items) {
    return Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", std::move(items)}}.dump();
  }

  FakeKubectl fake_;
  RunFolder folder_;
};

}  // namespace reckon::test
