#include "executor/kubernetes/pods/cluster_gang.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"
#include "executor/launch/supervise.h"
#include "sim/measurement/measurements.h"

// Who is to blame for the end of a gang, by what a cluster says of its pods.
using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;

namespace {

Json pod_of(int rank, const std::string& node) {
  return {{"metadata",
           {{"name", "job-0-worker-" + std::to_string(rank)},
            {"uid", "uid-" + std::to_string(rank)},
            {"labels", {{"reckon/attempt", "0"}}},
            {"annotations", {{"reckon/first-rank", std::to_string(rank)}}}}},
          {"spec", {{"nodeName", node}}},
          {"status", {{"phase", "Running"}}}};
}
Json deleting(Json pod) {
  pod["metadata"]["deletionTimestamp"] = "2026-11-22T03:00:00Z";
  return pod;
}
std::string event(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + '\n';
}
std::string node(bool ready) {
  return Json{
      {"metadata", {{"name", "node"}}},
      {"status",
       {{"conditions", Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})}}}}
      .dump();
}

// Two events of pods, the second once the Job's pods are to be ended; until then no node is lost.
const char* const kCluster = R"sh(
case "$*" in
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*watch=1*)
    cat first
    until [ -e patched ]; do sleep 0.05; done
    cat second
    exec sleep 30 ;;
  *pods*) cat pods ;;
  *jobs*) echo '{"items":[{}]}' ;;
  *patch*) touch patched ;;
  *node*) if [ -e patched ]; then cat later; else cat node; fi ;;
esac
)sh";

}  // namespace

TEST_CASE("who was deleted first is to blame, not a node that falls silent while all are ended") {
  const FakeKubectl fake(kCluster);
  fake.write("pods", Json{{"metadata", {{"resourceVersion", "1"}}},
                          {"items", Json::array({pod_of(0, "node-37"), pod_of(1, "node-31")})}}
                         .dump());
  fake.write("first", event("DELETED", deleting(pod_of(1, "node-31"))));
  fake.write("second", event("DELETED", deleting(pod_of(0, "node-37"))));
  fake.write("node", node(true));
  fake.write("later", node(false));
  const ClusterGangOptions options{
      .run = "job", .names = {"rank 0", "rank 1"}, .grace = Seconds{0.1}};
  const Kubectl kubectl = fake.kubectl();
  const GangEnd end = watch_cluster_gang(kubectl, options, {}, {});
  REQUIRE(end.culprit);
  CHECK(*end.culprit == 1);
  CHECK(end.reason == "rank 1 was deleted");
  CHECK(end.reasons[0] == "node-37 is lost");
}

TEST_CASE("a node that is gone when its pod has ended was taken back, as its taint had said") {
  const FakeKubectl fake(R"sh(
case "$*" in
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*watch=1*)
    cat told
    until [ -e looked ]; do sleep 0.05; done
    sleep 2.5
    touch gone
    cat ended
    exec sleep 30 ;;
  *pods*) cat pods ;;
  *jobs*) echo '{"items":[]}' ;;
  *node*)
    if [ -e gone ]; then echo 'Error from server (NotFound): nodes "spot" not found' >&2; exit 1; fi
    cat node
    touch looked ;;
esac
)sh");
  const Json pod = pod_of(0, "spot");
  fake.write("pods",
             Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", Json::array({pod})}}.dump());
  fake.write("told", event("MODIFIED", deleting(pod)));
  fake.write("ended", event("DELETED", deleting(pod)));
  Json tainted = Json::parse(node(true));
  tainted["spec"]["taints"] =
      Json::array({{{"key", "cloud.google.com/impending-node-termination"}}});
  fake.write("node", tainted.dump());
  const ClusterGangOptions options{.run = "job", .names = {"rank 0"}, .grace = Seconds{0.1}};
  const Kubectl kubectl = fake.kubectl();
  const GangEnd end = watch_cluster_gang(kubectl, options, {}, {});
  CHECK(end.cause == Interruption::preemption);
  CHECK(end.reason == "rank 0 spot was reclaimed or shut down");
}

TEST_CASE("who was deleted while nobody watched is to blame when the others have lost it") {
  // Rank 0 stopped behind a checkpoint with it (75); of rank 1 there is the pod that its Job made
  // in place of another, of which an event tells.
  const FakeKubectl fake(R"sh(
case "$*" in
  *events*watch=1*) exec sleep 30 ;;
  *events*) cat events ;;
  *pods*watch=1*)
    until [ -e patched ]; do sleep 0.05; done
    cat ended
    exec sleep 30 ;;
  *pods*) cat pods ;;
  *jobs*) echo '{"items":[{}]}' ;;
  *patch*) touch patched ;;
  *node*) cat node ;;
esac
)sh");
  const auto made = [](const std::string& job, const std::string& pod) {
    return Json{{"metadata", {{"name", job + ".1"}, {"uid", pod}}},
                {"involvedObject", {{"kind", "Job"}, {"name", job}}},
                {"reason", "SuccessfulCreate"},
                {"lastTimestamp", "2026-11-22T03:00:00Z"},
                {"message", "Created pod: " + pod}};
  };
  fake.write("events",
             Json{{"metadata", {{"resourceVersion", "1"}}},
                  {"items", Json::array({made("job-0-worker-0", "job-0-worker-0-aaaaa"),
                                         made("job-0-worker-1", "job-0-worker-1-bbbbb"),
                                         made("job-0-worker-1", "job-0-worker-1-ccccc")})}}
                 .dump());
  Json first = pod_of(0, "node"), second = pod_of(1, "node");
  first["metadata"]["name"] = "job-0-worker-0-aaaaa";
  first["metadata"]["creationTimestamp"] = "2026-11-22T03:00:00Z";
  first["status"] = {
      {"phase", "Failed"},
      {"containerStatuses",
       Json::array({{{"name", "main"}, {"state", {{"terminated", {{"exitCode", 75}}}}}}})}};
  second["metadata"]["name"] = "job-0-worker-1-ccccc";
  second["metadata"]["creationTimestamp"] = "2026-11-22T03:05:00Z";
  fake.write("pods",
             Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", Json::array({first, second})}}
                 .dump());
  fake.write("ended", event("DELETED", deleting(second)));
  fake.write("node", node(true));
  const ClusterGangOptions options{
      .run = "job", .names = {"rank 0", "rank 1"}, .grace = Seconds{0.5}};
  const Kubectl kubectl = fake.kubectl();
  std::string at_the_break;
  ClusterGangEvents events;
  events.breaks = [&](const GangEnd& end) { at_the_break = end.reason; };
  const GangEnd end = watch_cluster_gang(kubectl, options, events, {});
  REQUIRE(end.culprit);
  CHECK(*end.culprit == 1);
  CHECK(end.reason == "rank 1 was deleted while nobody watched");
  CHECK(at_the_break == end.reason);
}

namespace {

// A pod that has told of a step, and ends with `ended` when its Job's pods are to be ended.
const char* const kTrains = R"sh(
case "$*" in
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*watch=1*)
    until [ -e patched ]; do sleep 0.05; done
    cat ended
    exec sleep 30 ;;
  *"delete pods"*) echo "$*" >> said ;;
  *pods*) cat pods ;;
  *logs*) cat log
    until [ -e patched ]; do sleep 0.05; done ;;
  *jobs*) echo '{"items":[{}]}' ;;
  *patch*) echo patch >> said; touch patched ;;
  *node*) cat node ;;
esac
)sh";

struct Stopped {
  GangEnd end;
  std::string said;
};

Stopped stopped(StopRequest request, int code, Seconds notice = Seconds{20}) {
  const FakeKubectl fake(kTrains);
  const auto with = [](const char* state, Json what) {
    Json pod = pod_of(0, "node");
    what["startedAt"] = "2026-11-22T03:00:00Z";
    pod["status"]["containerStatuses"] =
        Json::array({{{"name", "main"}, {"state", {{state, what}}}}});
    return pod;
  };
  fake.write("pods", Json{{"metadata", {{"resourceVersion", "1"}}},
                          {"items", Json::array({with("running", Json::object())})}}
                         .dump());
  fake.write("ended", event("DELETED", deleting(with("terminated", {{"exitCode", code}}))));
  fake.write("node", node(true));
  fake.write("log", "2026-11-22T03:00:10Z " + to_json(StepRecord{}) + '\n');
  bool trains = false;
  ClusterGangEvents events;
  events.output = [&](int, Time, std::string_view) { trains = true; };
  ClusterGangOptions options{.run = "job", .names = {"rank 0"}, .notice = notice};
  options.own_notice = [] { return Seconds{89.5}; };
  const Kubectl kubectl = fake.kubectl();
  Stopped s;
  s.end = watch_cluster_gang(kubectl, options, events,
                             [&] { return trains ? request : StopRequest::none; });
  s.said = fake.read("said");
  return s;
}

}  // namespace

TEST_CASE("a stop of the watcher's own gives pods the time of a step and its save") {
  const Stopped s = stopped(StopRequest::own, 75);
  CHECK(verdict_on(s.end) == Verdict::stopped);
  CHECK(s.said ==
        "--namespace ns delete pods --selector app.kubernetes.io/name=reckon,"
        "app.kubernetes.io/instance=job,reckon/attempt=0 --field-selector "
        "status.phase!=Succeeded,status.phase!=Failed --grace-period=90 --wait=false "
        "--ignore-not-found\npatch\n");
  CHECK(stopped(StopRequest::own, 75, Seconds{300}).said.find("--grace-period=300 ") !=
        std::string::npos);
  CHECK(stopped(StopRequest::graceful, 75).said == "patch\n");
}

TEST_CASE("a pod that was killed before it had saved has not stopped as it was asked") {
  const GangEnd own = stopped(StopRequest::own, 137).end;
  CHECK(own.reason == "rank 0 did not stop within 1 min 30 s");
  CHECK(verdict_on(own) == Verdict::retry);
  const GangEnd asked = stopped(StopRequest::graceful, 137).end;
  CHECK(asked.reason == "rank 0 did not stop within its pod's grace period");
  CHECK(verdict_on(asked) == Verdict::hopeless);
  CHECK(stopped(StopRequest::graceful, 3).end.reason == "rank 0 ended with code 3");
}
