#include "executor/kubernetes/pods/free_room.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"

using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;

namespace {

Json node_with(const std::string& name, const std::string& cpu) {
  return {{"metadata", {{"name", name}}},
          {"status",
           {{"allocatable", {{"cpu", cpu}, {"memory", "8Gi"}, {"pods", "20"}}},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

Json asks(const std::string& cpu) {
  return {{"containers",
           {{{"name", "main"}, {"resources", {{"requests", {{"cpu", cpu}, {"memory", "1Gi"}}}}}}}}};
}

Json pod_on(const std::string& node, const std::string& run, const std::string& cpu,
            const std::string& phase = "Running", const std::string& name_space = "ns") {
  Json spec = asks(cpu);
  spec["nodeName"] = node;
  return {
      {"metadata",
       {{"name", "p"},
        {"namespace", name_space},
        {"labels", {{"app.kubernetes.io/name", "reckon"}, {"app.kubernetes.io/instance", run}}}}},
      {"spec", spec},
      {"status", {{"phase", phase}}}};
}

Json job_of(const std::string& component, const std::string& cpu) {
  return {{"metadata", {{"name", "job"}}},
          {"spec",
           {{"parallelism", 1},
            {"template",
             {{"metadata", {{"labels", {{"app.kubernetes.io/component", component}}}}},
              {"spec", asks(cpu)}}}}}};
}

Json list_of(std::vector<Json> items) { return {{"items", std::move(items)}}; }

}  // namespace

TEST_CASE("a run's own pods make room for its next ones, those of others do not") {
  const Json nodes = list_of({node_with("a", "4"), node_with("b", "2")});
  const Json jobs = list_of({job_of("worker", "1"), job_of("worker", "1")});
  const auto room = [&](std::vector<Json> pods) {
    return workers_with_room(jobs, nodes_left(nodes, list_of(std::move(pods)), "mine", "ns"), 10);
  };
  CHECK(room({}) == 6);
  CHECK(room({pod_on("a", "mine", "1"), pod_on("b", "mine", "1")}) == 6);
  CHECK(room({pod_on("a", "other", "1500m"), pod_on("b", "mine", "1")}) == 4);
  CHECK(room({pod_on("a", "other", "4", "Succeeded")}) == 6);
  // Of the same name, in another namespace.
  CHECK(room({pod_on("a", "mine", "1500m", "Running", "elsewhere")}) == 4);
  CHECK(room({pod_on("a", "other", "4"), pod_on("b", "other", "2")}) == 0);
  CHECK(workers_with_room(jobs, nodes, 3) == 3);  // no more are asked for
}

TEST_CASE("parameter servers keep their room") {
  const Json nodes = list_of({node_with("a", "4")});
  const Json jobs = list_of({job_of("worker", "1"), job_of("parameter-server", "2")});
  CHECK(workers_with_room(jobs, nodes, 10) == 2);
  CHECK(workers_with_room(list_of({job_of("parameter-server", "2")}), nodes, 10) == 0);
}

TEST_CASE("pods that stand by keep their room, and are no workers") {
  Json spare = job_of("worker", "2");
  spare["spec"]["template"]["metadata"]["labels"]["reckon/stands-by"] = "true";
  const Json nodes = list_of({node_with("a", "4")});
  CHECK(workers_with_room(list_of({spare, job_of("worker", "1")}), nodes, 10) == 2);
}

TEST_CASE("room for more workers of pods that stayed is looked for by the attempt of their Jobs") {
  // Their Jobs are of attempt 3, and the newest start that they were told is 12.
  const FakeKubectl fake(R"(
shift 2
case "$*" in
  "get jobs "*reckon/attempt=3\ *) cat jobs ;;
  "get jobs "*reckon/attempt*) echo '{"items": []}' ;;
  "get jobs "*instance=mine\ *) cat jobs ;;
  "get nodes "*) cat nodes ;;
  *) cat pods ;;
esac)");
  Json job = job_of("worker", "1");
  job["metadata"]["labels"]["reckon/attempt"] = "3";
  job["metadata"]["annotations"]["reckon/start"] = "12";
  fake.write("jobs", list_of({job, job}).dump());
  fake.write("nodes", list_of({node_with("a", "4")}).dump());
  fake.write("pods", list_of({pod_on("a", "mine", "1"), pod_on("a", "mine", "1")}).dump());
  CHECK(workers_with_room(fake.kubectl(), "mine", 10) == 4);
  fake.write("jobs", list_of({}).dump());
  CHECK(!workers_with_room(fake.kubectl(), "mine", 10));
}

TEST_CASE("an attempt is waited for until its pods have ended") {
  const FakeKubectl fake(R"(
shift 2
case "$1 $2" in
  "get jobs") echo '{"items": []}' ;;
  "get pods")
    n=$(cat asked 2>/dev/null || echo 0); echo $((n + 1)) > asked
    if [ $n -lt 2 ]; then phase=Running; else phase=Failed; fi
    echo '{"items": [{"metadata": {"name": "p"}, "status": {"phase": "'$phase'"}}]}' ;;
esac)");
  CHECK(end_attempt_and_wait(fake.kubectl(), "run", 1, Seconds{30}));
  CHECK(fake.read("asked") == "3\n");
  const FakeKubectl stuck(R"(
shift 2
case "$1 $2" in
  "get jobs") echo '{"items": []}' ;;
  "get pods") echo '{"items": [{"metadata": {"name": "p"}, "status": {"phase": "Running"}}]}' ;;
esac)");
  const auto stops = [] { return false; };
  CHECK(!end_attempt_and_wait(stuck.kubectl(), "run", 1, Seconds{60}, stops));
}

TEST_CASE("a pod of an attempt that does not end in time is deleted by force") {
  const FakeKubectl fake(R"(
shift 2
case "$1 $2" in
  "get jobs") echo '{"items": []}' ;;
  "delete pod") echo "$*" > deleted ;;
  "get pods")
    if [ -e deleted ]; then echo '{"items": []}'; exit; fi
    echo '{"items": [{"metadata": {"name": "p"}, "status": {"phase": "Running"}}]}' ;;
esac)");
  CHECK(end_attempt_and_wait(fake.kubectl(), "run", 1, Seconds{0.1}));
  CHECK(fake.read("deleted") ==
        "delete pod p --force --grace-period=0 --wait=false --ignore-not-found\n");
}
