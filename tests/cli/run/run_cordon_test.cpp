#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "executor/train/records/measurement_log.h"
#include "support/pod_of_job.h"
#include "support/small_job.h"

// `reckon run --on kubernetes --cordon-slow` in a cluster that a program of the shell plays.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

// Three pods, of which the third's log is that of a slow rank; the second attempt has finished when
// it is looked at.
const char* const kSlowCluster = R"sh(#!/bin/sh
attempt=$(echo "$*" | sed -n 's/.*attempt\(=\|%3D\)\([0-9]\).*/\2/p')
case "$*" in
  *version*) echo '{"serverVersion": {"major": "1", "minor": "31"}}' ;;
  *"can-i"*leases*) exit 1 ;;
  *"can-i"*) ;;
  *lease*) echo 'Error from server (Forbidden): leases is forbidden' >&2; exit 1 ;;
  *"get namespace"* | *"get persistentvolumeclaim"*) echo '{"metadata": {}}' ;;
  *"get resourcequotas"*) echo '{"items": []}' ;;
  *"get nodes"*) cat nodes ;;
  *"get node "*) echo '{"metadata": {"name": "n"}, "status": {"conditions": [
    {"type": "Ready", "status": "True"}]}}' ;;
  *"get configmap"*) if [ -e created ]; then echo '{"metadata": {}}'
    else echo 'Error from server (NotFound): not found' >&2; exit 1; fi ;;
  *dry-run*) cat > /dev/null; cat job ;;
  *"get jobs"*) sed "s/ATTEMPT/${attempt:-0}/g" jobs ;;
  *events*watch=1*) exec sleep 60 ;;
  *events*) echo '{"items": []}' ;;
  *pods*watch=1*) until [ -e deleted ]; do sleep 0.05; done; cat gone; exec sleep 60 ;;
  *"raw /api/v1/pods") echo '{"items": []}' ;;
  *"delete pod"*) touch deleted ;;
  *pods*) cat pods-$attempt ;;
  *logs*slow-0*) cat log-$(echo "$*" | sed 's/.*worker-\([0-9]\).*/\1/')
    until [ -e deleted ]; do sleep 0.05; done ;;
  *logs*) ;;
  *"patch --filename"*) cat > /dev/null ;;
  *"create --filename"*) cat > /dev/null; touch created ;;
  *"--filename"*) cat > /dev/null ;;
esac
)sh";

std::string cordon_log(int rank) {
  std::string text;
  const auto add = [&](int second, const MeasurementRecord& record) {
    text += "2026-11-22T03:00:" + std::to_string(second) + "Z " + to_json(record) + '\n';
  };
  if (rank == 0) add(10, RunRecord{});
  for (int step = 0; step < 25; ++step)
    add(11 + step, StepRecord{.rank = rank,
                              .step = step,
                              .at = Seconds{double(step)},
                              .seconds = Seconds{1},
                              .compute = Seconds{rank == 2 ? 0.9 : 0.3},
                              .samples = 24});
  return text;
}

}  // namespace

TEST_CASE("a slow rank's node is replaced with a forecast, which the history scores") {
  const Workspace w;
  nlohmann::json nodes = {{"items", nlohmann::json::array()}}, pods = nodes, done = nodes;
  const nlohmann::json resources = {{"cpu", "1"}, {"memory", "1Gi"}};
  for (int k = 0; k < 4; ++k)
    nodes["items"].push_back(
        {{"metadata", {{"name", "node-" + std::to_string(k)}}},
         {"status",
          {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
           {"allocatable", {{"cpu", "1"}, {"memory", "8Gi"}, {"pods", "9"}}}}}});
  std::string gone;
  for (int rank : {2, 0, 1}) {
    pods["items"].push_back(pod_of_job("slow", 0, rank, false));
    done["items"].push_back(pod_of_job("slow", 1, rank, true));
    gone +=
        nlohmann::json{{"type", "DELETED"}, {"object", pod_of_job("slow", 0, rank, false)}}.dump() +
        '\n';
    w.write("log-" + std::to_string(rank), cordon_log(rank));
  }
  nlohmann::json job = {
      {"kind", "Job"},
      {"metadata", {{"name", "slow-0-worker"}, {"labels", {{"reckon/attempt", "ATTEMPT"}}}}},
      {"spec",
       {{"parallelism", 1},
        {"template",
         {{"metadata", {{"labels", {{"app.kubernetes.io/component", "worker"}}}}},
          {"spec",
           {{"containers", {{{"name", "main"}, {"resources", {{"requests", resources}}}}}}}}}}}}};
  w.write("job", job.dump());
  w.write("jobs", nlohmann::json{{"items", {job, job, job}}}.dump());
  w.write("nodes", nodes.dump());
  w.write("pods-0", pods.dump());
  w.write("pods-1", done.dump());
  w.write("gone", gone);
  std::filesystem::permissions(w.write("kubectl", kSlowCluster), std::filesystem::perms::owner_all);
  w.write("slow.yaml",
          small_job("slow", "{kind: multi_worker_mirrored, workers: 3}", 500) + small_pool(3));

  const Output run = w.run(
      "run slow.yaml --on kubernetes --image none --claim disk --cordon-slow --replications 20 "
      "--retry-delay 10ms --deadline 1h",
      "RECKON_KUBECTL='" + w.path("kubectl").string() + "'");
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err, Contains("node node-2 is cordoned"));
  const auto measured = read_measurement_log(w.path("runs/slow/measurements.jsonl"));
  REQUIRE(measured);
  REQUIRE(measured->decisions.size() == 1);
  const DecisionRecord& decision = measured->decisions.front();
  CHECK_THAT(decision.what, Contains("node node-2 cordoned and its pod replaced: rank 2"));
  CHECK(decision.kept_p50 > decision.kept_p5);
  REQUIRE((decision.p5 && decision.p50 && decision.p95));
  CHECK(*decision.p5 > Seconds{0});
  CHECK(*decision.p95 >= *decision.p50);
  // 475 steps are left, of 1 s each with the slow rank and of 0.4 s without.
  CHECK(*decision.p50 < 0.8 * decision.kept_p50);
  const auto history = nlohmann::json::parse(w.run("history --format json").out);
  const nlohmann::json& forecasts = history.at("forecasts");
  const auto kept = std::find_if(forecasts.begin(), forecasts.end(),
                                 [](const auto& f) { return f.at("kind") == "decision"; });
  REQUIRE(kept != forecasts.end());
  CHECK(kept->at("time_seconds").at("p50").template get<double>() == Approx(decision.p50->count()));
  CHECK(!kept->at("run_seconds").is_null());
}
