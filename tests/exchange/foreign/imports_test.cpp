#include <catch2/catch.hpp>

#include "exchange/foreign/gke_node_pools.h"
#include "exchange/foreign/imports.h"
#include "exchange/foreign/tf_config.h"
#include "sim/scenario/plan.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string gke(const std::string& json, const PoolChoice& choice = {}) {
  return text_of(import_gke_node_pools(json, "pools.json", choice, shipped_catalog()));
}

const std::string kPools = R"([
  {"name": "default-pool", "config": {"machineType": "e2-standard-2", "diskSizeGb": 100},
   "initialNodeCount": 1, "locations": ["us-central1-c"]},
  {"name": "p100", "initialNodeCount": 3, "locations": ["us-central1-c"], "status": "RUNNING",
   "autoscaling": {"enabled": true, "maxNodeCount": 5},
   "management": {"autoUpgrade": true, "autoRepair": true},
   "config": {"machineType": "n1-standard-16", "spot": true, "diskType": "pd-ssd",
              "accelerators": [{"acceleratorCount": "2", "acceleratorType": "nvidia-tesla-p100"}]}},
  {"name": "ps", "initialNodeCount": 2, "locations": ["us-central1-c"],
   "config": {"machineType": "n1-highmem-8"}}
])";

}  // namespace

TEST_CASE("node pools of GKE: the one with accelerators trains, with its bounds and its pricing") {
  const std::string text = gke(kPools, {"", "ps"});
  INFO(text);
  const auto plan = plan_of(text);
  REQUIRE(plan);
  REQUIRE(plan->pools.size() == 2);
  const PlannedPool& workers = plan->pools[0];
  CHECK(workers.name == "p100");
  CHECK(workers.accelerator->name == "P100-PCIE-16");
  CHECK(workers.accelerators_per_node == 2);
  CHECK(workers.nodes_initial == 3);
  CHECK(workers.nodes_min == 0);
  CHECK(workers.nodes_max == 5);
  CHECK(workers.autoscaling);
  CHECK(workers.pricing == CapacityType::spot);
  CHECK(plan->pools[1].role == Role::parameter_server);
  CHECK(plan->zone == "us-central1-c");
  CHECK(plan->jobs.front().strategy.kind == StrategyKind::parameter_server);
  CHECK_THAT(text, Contains("#   - node pool default-pool (e2-standard-2)"));
  CHECK_THAT(text, Contains("#   - p100.management") && Contains("#   - p100.config.diskType"));
}

TEST_CASE("node pools of a regional cluster count by zone, totals do not") {
  const std::string pool = R"([{"name": "a", "initialNodeCount": 1,
    "locations": ["us-central1-a", "us-central1-b", "us-central1-c"],
    "autoscaling": {"enabled": true, "minNodeCount": 1, "totalMaxNodeCount": 7},
    "config": {"machineType": "n1-standard-8",
               "accelerators": [{"acceleratorCount": 1, "acceleratorType": "nvidia-tesla-t4"}]}}])";
  CHECK_THAT(gke(pool), Contains("nodes: {initial: 3, min: 3, max: 7}"));
  CHECK_THAT(gke(pool), Contains("region: us-central1\n") && !Contains("zone:"));
}

TEST_CASE("a node pool with a TPU topology is a slice") {
  const std::string text = gke(R"([{"name": "tpus", "initialNodeCount": 4,
    "locations": ["us-central1-a"], "placementPolicy": {"tpuTopology": "4x4"},
    "config": {"machineType": "ct5lp-hightpu-4t"}}])");
  CHECK_THAT(text, Contains("type: TPU-v5e, slice: v5e-16") || Contains("v5litepod-16"));
}

TEST_CASE("node pools that are none, or are asked for by a wrong name") {
  CHECK_THAT(gke(R"([{"name": "a", "initialNodeCount": 3, "locations": ["us-central1-c"],
    "autoscaling": {"enabled": true, "minNodeCount": 9, "maxNodeCount": 4},
    "config": {"machineType": "n1-standard-8"}}])"),
             Contains("pools.json:2:20: error: node pool a has at least 9 and at most 4 nodes"));
  CHECK_THAT(gke("[]"), Contains("no node pools are in it"));
  CHECK_THAT(gke("{\"a\": 1}"), Contains("pools.json:1:1: error: no node pools are in it"));
  CHECK_THAT(gke(kPools, {"p10", ""}), Contains("no node pool is named p10; did you mean 'p100'?"));
  CHECK_THAT(gke(R"([{"name": "a", "initialNodeCount": "x", "config": {}}])"),
             Contains("takes a whole number") && Contains("has no config.machineType"));
}

TEST_CASE("a TF_CONFIG whose own task is not in its cluster is refused") {
  const auto read = [](const std::string& task) {
    return text_of(import_tf_config(
        R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": )" + task + "}", "tf.json",
        {.workers = "n1-standard-16",
         .servers = "n1-highmem-8",
         .accelerator = "",
         .per_node = 1,
         .provider = Provider{"gcp"},
         .region = "us-central1"}));
  };
  CHECK_THAT(
      read(R"({"type": "wrker", "index": 0})"),
      Contains("the task is of type 'wrker', which the cluster has not; did you mean 'worker'?"));
  CHECK_THAT(read(R"({"type": "worker", "index": 2})"),
             Contains("the task is worker 2, and the cluster has 2 of them, from 0"));
  CHECK_THAT(read(R"({"type": "evaluator", "index": 0})"), !Contains("error"));
}

TEST_CASE("a pool of spot nodes has no reservation, whatever GKE writes of its affinity") {
  const auto pool = [](const std::string& more) {
    return gke(
        R"([{"name": "p", "initialNodeCount": 1, "locations": ["us-central1-c"], "config": )"
        R"({"machineType": "n1-standard-16", "reservationAffinity": {"consumeReservationType": ")" +
        more + R"(}}}])");
  };
  CHECK_THAT(pool(R"(NO_RESERVATION")"), !Contains("reservation"));
  CHECK_THAT(pool(R"(SPECIFIC_RESERVATION", "values": ["r"])"),
             Contains("pool p is priced on demand: what its reservation costs is yours to say"));
}

TEST_CASE("TF_CONFIG: how many of each role") {
  const AssumedMachines machines{"n1-standard-8", "n1-highmem-8", "T4", 1,
                                 Provider{"gcp"}, "us-central1"};
  const std::string text = text_of(import_tf_config(
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]},
          "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"})",
      "tf.json", machines));
  INFO(text);
  const auto plan = plan_of(text);
  REQUIRE(plan);
  REQUIRE(plan->pools.size() == 3);
  CHECK(plan->pools[1].nodes_max == 2);
  CHECK(plan->pools[2].role == Role::parameter_server);
  CHECK(plan->jobs.front().strategy.workers == 3);
  CHECK_THAT(text, Contains("#   - rpc_layer"));
  CHECK_THAT(text_of(import_tf_config("{}", "tf.json", machines)), Contains("no cluster is in it"));
  CHECK_THAT(
      text_of(import_tf_config(R"({"cluster": {"worker": ["a:1", "a:1"]}})", "tf.json", machines)),
      Contains("a:1 is twice in worker"));
}

TEST_CASE("of settings that were read only what is left of them is named") {
  const std::string text =
      gke(R"([{"name": "p", "initialNodeCount": 1, "locations": ["us-central1-c"],
    "autoscaling": {"enabled": true, "maxNodeCount": 5, "locationPolicy": "ANY"},
    "config": {"machineType": "n1-standard-16", "accelerators": [{"acceleratorCount": "2",
      "acceleratorType": "nvidia-tesla-p100", "gpuDriverInstallationConfig": {"gpuDriverVersion":
      "LATEST"}}]}}])");
  CHECK_THAT(text, Contains("#   - p.autoscaling.locationPolicy\n") &&
                       Contains("#   - p.config.accelerators.gpuDriverInstallationConfig\n"));
  const std::string pod = kubernetes(
      "kind: Pod\nspec:\n  containers:\n  - {name: a, image: i, resources: {limits: "
      "{cloud-tpus.google.com/v2: 8}}}\n");
  CHECK_THAT(pod, Contains("#   - Pod: containers.name\n"));
  const std::string job = kubernetes(
      "kind: Job\nmetadata: {name: t}\nspec:\n  template:\n    metadata: {annotations: {a: b}}\n"
      "    spec:\n      containers: [{image: i}]\n");
  CHECK_THAT(job, Contains("#   - Job t: template.metadata.annotations\n"));
}

TEST_CASE("a slice has its nodes from the start, and several slices are refused as such") {
  const std::string text = gke(R"([{"name": "tpus", "initialNodeCount": 4,
    "locations": ["us-central1-a"], "placementPolicy": {"tpuTopology": "4x4"},
    "autoscaling": {"enabled": true, "totalMinNodeCount": 0, "totalMaxNodeCount": 4},
    "config": {"machineType": "ct5lp-hightpu-4t"}}])");
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("pool tpus has the nodes of its slice from the start to the end"));
  const std::string set = kubernetes(
      "kind: JobSet\nmetadata: {name: js}\nspec:\n  replicatedJobs:\n  - name: slice\n"
      "    replicas: 2\n    template:\n      spec:\n        parallelism: 4\n        template:\n"
      "          spec:\n            nodeSelector: {cloud.google.com/gke-tpu-accelerator: "
      "tpu-v5-lite-podslice, cloud.google.com/gke-tpu-topology: 4x4}\n"
      "            containers: [{image: i, resources: {limits: {google.com/tpu: 4}}}]\n");
  CHECK_THAT(set,
             Contains("2 slices v5litepod-16; one job on several TPU slices is not simulated"));
}
