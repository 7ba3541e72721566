#include "executor/kubernetes/pods/node_fit.h"

#include <catch2/catch.hpp>

using namespace reckon;
using namespace reckon::kubernetes;
using Catch::Matchers::Contains;

namespace {

Json node_fit_node(const std::string& name, const std::string& cpu, const std::string& memory,
                   int gpus, Json more = Json::object()) {
  Json n = {{"metadata", {{"name", name}, {"labels", {{"zone", "a"}}}}},
            {"spec", Json::object()},
            {"status",
             {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
              {"allocatable",
               {{"cpu", cpu},
                {"memory", memory},
                {"pods", "110"},
                {"nvidia.com/gpu", std::to_string(gpus)}}}}}};
  n.merge_patch(more);
  return n;
}
Json nodes(std::vector<Json> items) { return {{"items", std::move(items)}}; }

PodDemand demand(int count, double cpu, double gib, double gpus) {
  PodDemand d;
  d.name = "job train-0-worker";
  d.count = count;
  d.requests = {{"cpu", cpu}, {"memory", gib * 1073741824}, {"pods", 1}};
  if (gpus > 0) d.requests["nvidia.com/gpu"] = gpus;
  return d;
}

}  // namespace

TEST_CASE("quantities are read as Kubernetes writes them") {
  CHECK(quantity_of("2") == 2);
  CHECK(*quantity_of("440m") == Approx(0.44));
  CHECK(quantity_of("156Mi") == 156 * 1048576.0);
  CHECK(quantity_of("24689304Ki") == 24689304 * 1024.0);
  CHECK(quantity_of("1e3") == 1000);
  CHECK(quantity_of("3M") == 3e6);
  CHECK(quantity_of("2E") == 2e18);
  CHECK(quantity_of("1Ei") == 1152921504606846976.0);
  CHECK(!quantity_of("many"));
  CHECK(!quantity_of(""));
}

TEST_CASE("what a Job's pods ask for is read from its manifest, a limit counting as a request") {
  const Json job = Json::parse(R"({"kind": "Job", "metadata": {"name": "a"}, "spec": {
    "parallelism": 3, "template": {"spec": {
      "nodeSelector": {"zone": "a"}, "tolerations": [{"key": "spot", "operator": "Exists"}],
      "containers": [{"resources": {"requests": {"cpu": "1500m", "memory": "1Gi"},
                                    "limits": {"memory": "2Gi", "nvidia.com/gpu": 4}}}]}}}})");
  const auto demands = demands_of({job, Json{{"kind", "Service"}}});
  REQUIRE(demands.size() == 1);
  CHECK(demands[0].count == 3);
  CHECK(demands[0].requests ==
        Resources{{"cpu", 1.5}, {"memory", 1073741824.0}, {"nvidia.com/gpu", 4}, {"pods", 1}});
  CHECK(demands[0].selector.at("zone") == "a");
  CHECK(demands[0].tolerations.size() == 1);
}

TEST_CASE("pods fill nodes until something is short") {
  // 2 GPUs a pod: three pods on the node with seven, four on that with eight.
  const Json all =
      nodes({node_fit_node("a", "64", "512Gi", 7), node_fit_node("b", "64", "512Gi", 8)});
  CHECK(room_for({demand(7, 1, 1, 2)}, all).placed == 7);
  const Room room = room_for({demand(8, 1, 1, 2)}, all);
  CHECK(room.pods == 8);
  CHECK(room.placed == 7);
  CHECK(room.misfits.empty());
}

TEST_CASE("a pod that no node can hold is told with what is short, by node") {
  const Room room =
      room_for({demand(1, 1, 1, 16)},
               nodes({node_fit_node("a", "64", "512Gi", 8), node_fit_node("b", "4", "8Gi", 0)}));
  CHECK(room.placed == 0);
  REQUIRE(room.misfits.size() == 1);
  CHECK(
      room.misfits[0] ==
      "no node has room for a pod of job train-0-worker (of 2 nodes; 1: 0 nvidia.com/gpu where 16 "
      "nvidia.com/gpu is asked for; 1: 8 nvidia.com/gpu where 16 nvidia.com/gpu is asked for)");
}

TEST_CASE("jobs that are alike and fit nowhere are told of in one sentence") {
  PodDemand other = demand(1, 1, 1, 16), large = demand(1, 1, 1, 32);
  other.name = "job train-0-worker-1";
  large.name = "job train-0-chief";
  const Room room =
      room_for({demand(1, 1, 1, 16), other, large}, nodes({node_fit_node("a", "64", "512Gi", 8)}));
  REQUIRE(room.misfits.size() == 2);
  CHECK(room.misfits[0] ==
        "no node has room for a pod of job train-0-chief (of 1 nodes; 1: 8 nvidia.com/gpu where 32 "
        "nvidia.com/gpu is asked for)");
  CHECK(room.misfits[1] ==
        "no node has room for a pod of job train-0-worker, nor of 1 other job like it (of 1 nodes; "
        "1: 8 nvidia.com/gpu where 16 nvidia.com/gpu is asked for)");
}

TEST_CASE("labels, taints, cordons and nodes that are not ready keep pods away") {
  const Json tainted = {
      {"spec", {{"taints", {{{"key", "spot"}, {"value", "true"}, {"effect", "NoSchedule"}}}}}}};
  const Json cordoned = {{"spec", {{"unschedulable", true}}}};
  const Json away = {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "Unknown"}}}}}}};
  PodDemand pod = demand(1, 1, 1, 0);
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, tainted)})).placed == 0);
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, cordoned)})).placed == 0);
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, away)})).placed == 0);
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, away)})).not_ready == 1);
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, tainted)})).not_ready == 0);
  const Json new_here = {
      {"spec",
       {{"taints", {{{"key", "node.kubernetes.io/not-ready"}, {"effect", "NoSchedule"}}}}}}};
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, new_here)})).placed == 1);
  pod.tolerations = {{{"key", "spot"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}};
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, tainted)})).placed == 1);
  pod.tolerations = {{{"key", "spot"}, {"value", "false"}}};
  CHECK(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0, tainted)})).placed == 0);
  pod.selector = {{"zone", "b"}};
  CHECK_THAT(room_for({pod}, nodes({node_fit_node("a", "4", "8Gi", 0)})).misfits.at(0),
             Contains("1: no label zone=b"));
}
