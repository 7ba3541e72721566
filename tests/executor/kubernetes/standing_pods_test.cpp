#include "executor/kubernetes/pods/standing_pods.h"

#include <catch2/catch.hpp>

#include "executor/comm/errors.h"
#include "executor/kubernetes/fake_kubectl.h"
#include "executor/train/records/pod_orders.h"

// Starts of a job whose pods stay, by what a cluster says of them and what it is told.
using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// `uid`: behind the rank; `phase`: Running, Succeeded; `start`: that it was told, "": none.
Json standing_pod(int rank, const std::string& uid, const char* phase, const std::string& start) {
  const std::string name = "job-0-worker-" + std::to_string(rank) + '-' + uid;
  Json pod = {{"metadata",
               {{"name", name},
                {"uid", name},
                {"labels", {{"reckon/attempt", "0"}}},
                {"annotations", {{"reckon/first-rank", std::to_string(rank)}}}}},
              {"spec", {{"nodeName", "node"}}},
              {"status", {{"phase", phase}}}};
  if (!start.empty()) pod["metadata"]["annotations"][kStartAnnotation] = start;
  const Json state =
      std::string(phase) == "Running"
          ? Json{{"running", {{"startedAt", "2026-11-22T03:00:00Z"}}}}
          : Json{{"terminated", {{"exitCode", 0}, {"startedAt", "2026-11-22T03:00:00Z"}}}};
  pod["status"]["containerStatuses"] = Json::array({{{"name", "main"}, {"state", state}}});
  return pod;
}
std::string pod_event(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + '\n';
}
std::string pod_list(const Json& first, const Json& second) {
  return Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", Json::array({first, second})}}
      .dump();
}

// What happens once start 0 is ordered, and what once start 1 is.
const char* const kStandingCluster = R"sh(
echo "$*" >> said
case "$*" in
  *annotate*pods*start=0*) touch told-0 ;;
  *annotate*pods*start=1*) touch told-1 ;;
  *annotate*) ;;
  *logs*worker-0*) cat log-0 ;;
  *logs*) ;;
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*watch=1*)
    until [ -e told-0 ]; do sleep 0.05; done
    cat first
    until [ -e told-1 ]; do sleep 0.05; done
    cat second
    exec sleep 30 ;;
  *pods*) cat pods ;;
  *node*) echo '{"metadata": {"name": "node"}, "status": {"conditions": [
    {"type": "Ready", "status": "True"}]}}' ;;
esac
)sh";

ClusterGangOptions two_standing() {
  return {.run = "job", .names = {"rank 0", "rank 1"}, .stays = true, .grace = Seconds{0.1}};
}

}  // namespace

TEST_CASE("a start that lost a pod leaves the others, and the next is ordered when all run") {
  const FakeKubectl fake(kStandingCluster);
  const Json first = standing_pod(0, "a", "Running", "");
  const Json lost = standing_pod(1, "a", "Running", "");
  fake.write("log-0", "");
  fake.write("pods", pod_list(first, lost));
  fake.write("first",
             pod_event("DELETED", lost) + pod_event("ADDED", standing_pod(1, "b", "Running", "")));
  fake.write("second", pod_event("MODIFIED", standing_pod(0, "a", "Succeeded", "1")) +
                           pod_event("MODIFIED", standing_pod(1, "b", "Succeeded", "1")));
  const Kubectl kubectl = fake.kubectl();
  StandingPods pods(kubectl, two_standing(), {});
  const GangEnd broken = pods.run(0, {});
  REQUIRE(broken.culprit);
  CHECK(*broken.culprit == 1);
  CHECK(broken.reason == "rank 1 was deleted");
  REQUIRE(pods.can_go_on());
  CHECK(pods.run(1, {}).code == 0);
  CHECK(!pods.can_go_on());  // their Jobs are done
  const std::string said = fake.read("said");
  CHECK_THAT(said, Contains("annotate pods job-0-worker-0-a job-0-worker-1-a reckon/start=0"));
  CHECK_THAT(said, Contains("annotate pods job-0-worker-0-a job-0-worker-1-b reckon/start=1"));
  CHECK(said.find("annotate jobs") < said.find("annotate pods"));
  CHECK_THAT(said, !Contains("patch"));  // nobody was ended
}

TEST_CASE("a rank that left a start although no pod is lost has lost the others") {
  const FakeKubectl fake(kStandingCluster);
  fake.write("log-0", "2026-11-22T03:00:01Z " + waiting_line(-1) +  // before its first start
                          "2026-11-22T03:00:02Z " + waiting_line(0));
  fake.write("first", "");
  const Kubectl kubectl = fake.kubectl();
  // Both were told start 0 by a launcher before, so that the log is not ahead of the order.
  fake.write("pods",
             pod_list(standing_pod(0, "a", "Running", "0"), standing_pod(1, "a", "Running", "0")));
  StandingPods pods(kubectl, two_standing(), {});
  const GangEnd end = pods.run(0, {});
  CHECK(end.code == kExitLostPeer);
  CHECK(end.reason == "rank 0 lost the others");
  CHECK(pods.can_go_on());
}

TEST_CASE("a pod that was not told the start of the others was made while nobody watched") {
  const FakeKubectl fake(kStandingCluster);
  fake.write("log-0", "");
  fake.write("first", "");
  fake.write("pods",
             pod_list(standing_pod(0, "a", "Running", "3"), standing_pod(1, "b", "Running", "")));
  const Kubectl kubectl = fake.kubectl();
  StandingPods pods(kubectl, two_standing(), {});
  const GangEnd end = pods.run(3, {});
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 was deleted while nobody watched");
  CHECK_THAT(fake.read("said"), !Contains("annotate"));
}
