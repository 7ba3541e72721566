#include "executor/kubernetes/pods/cluster_gang.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"

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
