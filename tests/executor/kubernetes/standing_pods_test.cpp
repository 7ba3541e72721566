#include "executor/kubernetes/pods/standing_pods.h"

#include <catch2/catch.hpp>
#include <map>
#include <mutex>

#include "executor/comm/errors.h"
#include "executor/kubernetes/fake_kubectl.h"
#include "executor/launch/supervise.h"
#include "executor/train/records/pod_orders.h"

// Starts of a job whose pods stay, by what a cluster says of them and what it is told.
using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// "3 1 2 10.0.0.0:2222 end": rank 0 at place 0.
std::string order_of(std::int64_t start, int rank, int ranks, int first_place = 0) {
  return order_text({.attempt = start,
                     .rank = rank,
                     .workers = ranks,
                     .master = {"10.0.0." + std::to_string(first_place), 2222}});
}

/// `uid`: behind the place; `phase`: Running, Succeeded; `order`: that it was given, "": none.
Json standing_pod(int place, const std::string& uid, const char* phase, const std::string& order) {
  const std::string name = "job-0-worker-" + std::to_string(place) + '-' + uid;
  Json pod = {
      {"metadata",
       {{"name", name},
        {"uid", name},
        {"labels", {{"reckon/attempt", "0"}}},
        {"annotations", {{"reckon/first-rank", std::to_string(place)}}}}},
      {"spec",
       {{"nodeName", "node"},
        {"containers", Json::array({{{"name", "main"},
                                     {"ports", Json::array({{{"name", "reckon"},
                                                             {"containerPort", 2222}}})}}})}}},
      {"status", {{"phase", phase}, {"podIP", "10.0.0." + std::to_string(place)}}}};
  if (!order.empty()) pod["metadata"]["annotations"][kStartAnnotation] = order;
  const Json state =
      std::string(phase) == "Running"
          ? Json{{"running", {{"startedAt", "2026-11-22T03:00:00Z"}}}}
          : Json{{"terminated", {{"exitCode", 0}, {"startedAt", "2026-11-22T03:00:00Z"}}}};
  pod["status"]["containerStatuses"] = Json::array({{{"name", "main"}, {"state", state}}});
  return pod;
}
Json running_pod(int place, const std::string& uid, const std::string& order = "") {
  return standing_pod(place, uid, "Running", order);
}
std::string done_pod(int place, const std::string& uid, const std::string& order) {
  return Json{{"type", "MODIFIED"}, {"object", standing_pod(place, uid, "Succeeded", order)}}
             .dump() +
         '\n';
}
std::string pod_event(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + '\n';
}
std::string pod_list(std::vector<Json> pods) {
  return Json{{"metadata", {{"resourceVersion", "1"}}}, {"items", std::move(pods)}}.dump();
}

// told-N: all ranks of start N have their orders; told-N-R: rank R has. What the watch says then is
// in events-N, what logs say then besides is in log-PLACE-N; events-end: when all are ended;
// events-late: 4 s behind the last.
const char* const kStandingCluster = R"sh(
echo "$*" >> said
case "$*" in
  *"annotate pod "*)
    set -- $(echo "$*" | sed 's/.*start=//')
    touch told-$1-$2
    if [ $2 -eq $(($3 - 1)) ]; then touch told-$1; fi ;;
  *annotate*) ;;
  *logs*)
    place=$(echo "$*" | sed 's/.*worker-\([0-9]\).*/\1/')
    cat log-$place 2> /dev/null
    for start in 0 1 2 3; do
      if [ -e told-$start-0 ]; then cat log-$place-$start 2> /dev/null; fi
    done ;;
  *events*watch=1*) exec sleep 30 ;;
  *events*) echo '{"items":[]}' ;;
  *pods*watch=1*)
    for start in 0 1 2 3 end; do
      if [ -e events-$start ]; then
        until [ -e told-$start ]; do sleep 0.05; done
        cat events-$start
      fi
    done
    if [ -e events-late ]; then sleep 4; cat events-late; fi
    exec sleep 30 ;;
  *pods*) cat pods ;;
  *jobs*) echo '{"items":[{}]}' ;;
  *patch*) touch told-end ;;
  *node*) echo '{"metadata": {"name": "node"}, "status": {"conditions": [
    {"type": "Ready", "status": "True"}]}}' ;;
esac
)sh";

ClusterGangOptions standing(int ranks, SeatingRules seating = {}) {
  ClusterGangOptions options{
      .run = "job", .seating = seating, .stays = true, .grace = Seconds{0.1}};
  for (int rank = 0; rank < ranks; ++rank) options.names.push_back("rank " + std::to_string(rank));
  options.ends_with_first = seating.kind != RestartKind::in_place;
  return options;
}
const SeatingRules kOneSpare{.kind = RestartKind::warm_spare, .spares = 1};
const SeatingRules kElastic{.kind = RestartKind::elastic, .least = 2};

std::string log_line(const char* second, const std::string& line) {
  return std::string("2026-11-22T03:00:") + second + "Z " + line +
         (line.ends_with('\n') ? "" : "\n");
}
std::string annotated(int place, const std::string& uid, const std::string& order) {
  return "annotate pod job-0-worker-" + std::to_string(place) + '-' + uid +
         " reckon/start=" + order;
}

/// What a launcher hears.
struct Heard {
  std::vector<std::pair<int, std::string>> lines;
  std::string messages;
  std::vector<std::string> names;
  ClusterGangEvents events() {
    ClusterGangEvents all;
    all.output = [this](int rank, Time, std::string_view line) { lines.emplace_back(rank, line); };
    all.message = [this](const std::string& text) { messages += text + '\n'; };
    all.pods = [this](const std::vector<PodProgress>& pods) {
      names.clear();
      for (const PodProgress& pod : pods) names.push_back(pod.name);
    };
    return all;
  }
};

}  // namespace

TEST_CASE("a start that lost a pod leaves the others, and the next is ordered when all run") {
  const FakeKubectl fake(kStandingCluster);
  const Json lost = running_pod(1, "a");
  fake.write("pods", pod_list({running_pod(0, "a"), lost}));
  fake.write("events-0", pod_event("DELETED", lost) + pod_event("ADDED", running_pod(1, "b")));
  fake.write("events-1", done_pod(0, "a", order_of(1, 0, 2)) + done_pod(1, "b", order_of(1, 1, 2)));
  const Kubectl kubectl = fake.kubectl();
  StandingPods pods(kubectl, standing(2), {});
  const GangEnd broken = pods.run(0, {});
  REQUIRE(broken.culprit);
  CHECK(*broken.culprit == 1);
  CHECK(broken.reason == "rank 1 was deleted");
  REQUIRE(pods.can_go_on());
  CHECK(pods.run(1, {}).code == 0);
  CHECK(!pods.can_go_on());  // their Jobs are done
  const std::string said = fake.read("said");
  for (const int start : {0, 1}) {
    CHECK_THAT(said, Contains(annotated(0, "a", order_of(start, 0, 2))));
    CHECK_THAT(said, Contains(annotated(1, start == 0 ? "a" : "b", order_of(start, 1, 2))));
  }
  CHECK(said.find("annotate jobs") < said.find("annotate pod "));
  CHECK_THAT(said, !Contains("patch"));  // nobody was ended
}

TEST_CASE("a rank that left a start although no pod is lost has lost the others") {
  const FakeKubectl fake(kStandingCluster);
  fake.write("log-0", log_line("01", waiting_line(-1)) +  // before its first start
                          log_line("02", waiting_line(0)));
  const Kubectl kubectl = fake.kubectl();
  // Both were told start 0 by a launcher before, so that the log is not ahead of the order. Pods of
  // an older launcher have its number alone.
  const bool older = GENERATE(false, true);
  fake.write("pods", pod_list({running_pod(0, "a", older ? "0" : order_of(0, 0, 2)),
                               running_pod(1, "a", older ? "0" : order_of(0, 1, 2))}));
  StandingPods pods(kubectl, standing(2), {});
  const GangEnd end = pods.run(0, {});
  CHECK(end.code == kExitLostPeer);
  CHECK(end.reason == "rank 0 lost the others");
  CHECK(pods.can_go_on());
}

TEST_CASE(
    "pods that stay and hang take no orders: all are ended, and the next start makes others") {
  const FakeKubectl fake(kStandingCluster);
  const Json first = running_pod(0, "a"), second = running_pod(1, "a");
  fake.write("pods", pod_list({first, second}));
  fake.write("events-end", pod_event("DELETED", first));
  fake.write("events-late", pod_event("DELETED", second));
  const Kubectl kubectl = fake.kubectl();
  ClusterGangEvents events;
  events.hangs = [](Seconds) { return "no step was told for 5 min behind step 7"; };
  std::string at_the_break;
  events.breaks = [&](const GangEnd& end) { at_the_break = end.reason; };
  StandingPods pods(kubectl, standing(2), events);
  const GangEnd end = pods.run(0, {});
  CHECK(end.hung);
  CHECK(verdict_on(end) == Verdict::retry);
  CHECK(end.reason == "no step was told for 5 min behind step 7");
  CHECK(at_the_break == end.reason);
  CHECK(end.reasons == std::vector<std::string>{"was deleted", "was deleted"});
  CHECK(!pods.can_go_on());
  CHECK_THAT(fake.read("said"), Contains("patch"));
}

TEST_CASE("a pod that was not told the start of the others was made while nobody watched") {
  const FakeKubectl fake(kStandingCluster);
  fake.write("pods", pod_list({running_pod(0, "a", order_of(3, 0, 2)), running_pod(1, "b")}));
  const Kubectl kubectl = fake.kubectl();
  StandingPods pods(kubectl, standing(2), {});
  const GangEnd end = pods.run(3, {});
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 was deleted while nobody watched");
  CHECK_THAT(fake.read("said"), !Contains("annotate"));
}

TEST_CASE("a spare pod takes the lost rank at once, and whoever is made then stands by") {
  const FakeKubectl fake(kStandingCluster);
  const Json lost = running_pod(1, "a");
  fake.write("pods", pod_list({running_pod(0, "a"), lost, running_pod(2, "a")}));
  fake.write("log-2", log_line("01", waiting_line(-1)) + log_line("02", "hello"));
  fake.write("log-2-1", log_line("05", part_line({.attempt = 1, .rank = 1, .workers = 2})) +
                            log_line("06", "goes on"));
  // The Job's new pod has not started by then.
  Json fresh = running_pod(1, "b");
  fresh["status"]["containerStatuses"] = Json::array();
  fake.write("events-0", pod_event("DELETED", lost) + pod_event("ADDED", fresh));
  fake.write("events-1", done_pod(0, "a", order_of(1, 0, 2)) + done_pod(2, "a", order_of(1, 1, 2)));
  fake.write("events-end", pod_event("DELETED", fresh));
  const Kubectl kubectl = fake.kubectl();
  Heard heard;
  StandingPods pods(kubectl, standing(2, kOneSpare), heard.events());
  const GangEnd broken = pods.run(0, {});
  CHECK(broken.culprit == 1);
  CHECK(broken.reason == "rank 1 was deleted");
  const GangEnd end = pods.run(1, {});
  CHECK(end.code == 0);
  CHECK(!end.culprit);
  const std::string said = fake.read("said");
  CHECK_THAT(said, Contains(annotated(0, "a", order_of(0, 0, 2))) &&
                       Contains(annotated(1, "a", order_of(0, 1, 2))) &&
                       Contains(annotated(0, "a", order_of(1, 0, 2))) &&
                       Contains(annotated(2, "a", order_of(1, 1, 2))));
  CHECK_THAT(said, !Contains("annotate pod job-0-worker-1-b"));
  CHECK_THAT(said, Contains("patch"));  // who stands by does not end by itself
  CHECK(heard.names == std::vector<std::string>{"rank 0", "rank 1", "stands by"});
  std::map<std::string, int> rank_of;
  for (const auto& [rank, line] : heard.lines) rank_of[line] = rank;
  REQUIRE(rank_of.contains("goes on"));
  CHECK(rank_of["hello"] == -1);
  CHECK(rank_of["goes on"] == 1);
}

TEST_CASE("a pod that stands by and is lost is nobody's loss") {
  const FakeKubectl fake(kStandingCluster);
  const Json spare = running_pod(2, "a"), next = running_pod(2, "b");
  fake.write("pods", pod_list({running_pod(0, "a"), running_pod(1, "a"), spare}));
  fake.write("events-0", pod_event("DELETED", spare) + pod_event("ADDED", next) +
                             done_pod(0, "a", order_of(0, 0, 2)) +
                             done_pod(1, "a", order_of(0, 1, 2)));
  fake.write("events-end", pod_event("DELETED", next));
  const Kubectl kubectl = fake.kubectl();
  Heard heard;
  StandingPods pods(kubectl, standing(2, kOneSpare), heard.events());
  const GangEnd end = pods.run(0, {});
  CHECK(end.code == 0);
  CHECK(!end.culprit);
  CHECK_THAT(heard.messages, Contains("a pod that stands by was deleted"));
}

TEST_CASE("an elastic job shrinks at once, and regroups behind a step when a new pod is ready") {
  const FakeKubectl fake(kStandingCluster);
  const Json lost = running_pod(1, "a"), fresh = running_pod(1, "b");
  const std::string begins = R"({"record":"run"})";
  fake.write("pods", pod_list({running_pod(0, "a"), lost, running_pod(2, "a")}));
  fake.write("events-0", pod_event("DELETED", lost));
  fake.write("events-1", pod_event("ADDED", fresh));
  fake.write("log-0-1", log_line("03", waiting_line(0)) +
                            log_line("04", part_line({.attempt = 1, .rank = 0, .workers = 2})) +
                            log_line("05", begins));
  fake.write("log-1-1", log_line("06", waiting_line(-1)));
  fake.write("log-0-2", log_line("07", waiting_line(1)));
  fake.write("events-2", done_pod(0, "a", order_of(2, 0, 3)) + done_pod(1, "b", order_of(2, 2, 3)) +
                             done_pod(2, "a", order_of(2, 1, 3)));
  const Kubectl kubectl = fake.kubectl();
  Heard heard;
  StandingPods pods(kubectl, standing(3, kElastic), heard.events());
  const GangEnd broken = pods.run(0, {});
  CHECK(broken.culprit == 1);
  const GangEnd smaller = pods.run(1, {});
  CHECK(smaller.regroups);
  CHECK(!smaller.culprit);
  CHECK(verdict_on(smaller) == Verdict::regroup);
  CHECK_THAT(heard.messages, Contains("a pod is ready to join"));
  CHECK(pods.run(2, {}).code == 0);
  const std::string said = fake.read("said");
  INFO(said);
  CHECK_THAT(said, Contains(annotated(0, "a", order_of(1, 0, 2))) &&
                       Contains(annotated(2, "a", order_of(1, 1, 2))));
  CHECK_THAT(said, Contains(annotated(2, "a", order_of(2, 1, 3))) &&
                       Contains(annotated(1, "b", order_of(2, 2, 3))));
  // Rank 0 first, and the others when it has left the smaller start: its log is read in between.
  const std::size_t first = said.find(annotated(0, "a", order_of(2, 0, 3)));
  REQUIRE(first != std::string::npos);
  const std::size_t read = said.find("logs job-0-worker-0-a", first);
  CHECK(read < said.find(annotated(2, "a", order_of(2, 1, 3))));
  CHECK(read < said.find(annotated(1, "b", order_of(2, 2, 3))));
}

TEST_CASE("an elastic job below its least waits for pods, and goes on with the first that do") {
  const FakeKubectl fake(kStandingCluster);
  const Json lost = running_pod(1, "a"), also = running_pod(2, "a");
  fake.write("pods", pod_list({running_pod(0, "a"), lost, also}));
  fake.write("events-0", pod_event("DELETED", lost) + pod_event("DELETED", also) +
                             pod_event("ADDED", running_pod(2, "b")));
  fake.write("log-2", log_line("06", waiting_line(-1)));
  fake.write("events-1", done_pod(0, "a", order_of(1, 0, 2)) + done_pod(2, "b", order_of(1, 1, 2)));
  const Kubectl kubectl = fake.kubectl();
  StandingPods pods(kubectl, standing(3, kElastic), {});
  CHECK(pods.run(0, {}).culprit == 1);
  CHECK(pods.run(1, {}).code == 0);
  CHECK_THAT(fake.read("said"), Contains(annotated(2, "b", order_of(1, 1, 2))));
}

TEST_CASE("a later launcher finds by the pods' orders which has which rank") {
  const FakeKubectl fake(kStandingCluster);
  const Json spare = running_pod(2, "a", order_of(3, 1, 2));
  SECTION("all are there: nothing is told, and what is lost is a rank") {
    fake.write("pods",
               pod_list({running_pod(0, "a", order_of(3, 0, 2)), running_pod(1, "b"), spare}));
    fake.write("events-3", pod_event("DELETED", spare));
    fake.write("told-3", "");
    const Kubectl kubectl = fake.kubectl();
    StandingPods pods(kubectl, standing(2, kOneSpare), {});
    const GangEnd end = pods.run(3, {});
    CHECK(end.culprit == 1);
    CHECK(end.reason == "rank 1 was deleted");
    CHECK_THAT(fake.read("said"), !Contains("annotate"));
  }
  SECTION("the one before was lost while it gave orders: they are completed") {
    // Rank 1 was that of place 2 in the start before.
    fake.write("pods", pod_list({running_pod(0, "a", order_of(3, 0, 2)), running_pod(1, "b"),
                                 running_pod(2, "a", order_of(2, 1, 2))}));
    fake.write("events-3",
               done_pod(0, "a", order_of(3, 0, 2)) + done_pod(2, "a", order_of(3, 1, 2)));
    fake.write("events-end", pod_event("DELETED", running_pod(1, "b")));
    const Kubectl kubectl = fake.kubectl();
    StandingPods pods(kubectl, standing(2, kOneSpare), {});
    CHECK(pods.run(3, {}).code == 0);
    CHECK_THAT(fake.read("said"), Contains(annotated(2, "a", order_of(3, 1, 2))) &&
                                      !Contains("annotate pod job-0-worker-1-b"));
  }
  SECTION("an annotation that is no order is said, and its pod has no rank") {
    fake.write("pods", pod_list({running_pod(0, "a", order_of(3, 0, 2)),
                                 running_pod(1, "b", "3 1 2 10.0.0.0:22"), running_pod(2, "a")}));
    const Kubectl kubectl = fake.kubectl();
    Heard heard;
    StandingPods pods(kubectl, standing(2, kOneSpare), heard.events());
    CHECK(pods.run(3, {}).reason == "rank 1 was deleted while nobody watched");
    CHECK_THAT(heard.messages, Contains("job-0-worker-1-b: '3 1 2 10.0.0.0:22' is no order"));
  }
}
