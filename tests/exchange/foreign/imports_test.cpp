#include <catch2/catch.hpp>

#include "exchange/foreign/gke_node_pools.h"
#include "exchange/foreign/kubernetes_jobs.h"
#include "exchange/foreign/resnet_work.h"
#include "exchange/foreign/tf_config.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string text_of(const Expected<Imported>& found) {
  if (!found) return format(found.error());
  const auto text = scenario_of(*found, kResNet50, shipped_catalog());
  return text ? *text : format(text.error());
}

std::string gke(const std::string& json, const PoolChoice& choice = {}) {
  return text_of(import_gke_node_pools(json, "pools.json", choice, shipped_catalog()));
}
std::string kubernetes(const std::string& yaml, const ClusterHints& hints = {}) {
  return text_of(import_kubernetes_job(yaml, "job.yaml", hints, shipped_catalog()));
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

const std::string kJob = R"(apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 8
  completions: 8
  completionMode: Indexed
  backoffLimit: 3
  template:
    spec:
      restartPolicy: Never
      nodeSelector:
        cloud.google.com/gke-accelerator: nvidia-tesla-a100
        cloud.google.com/gke-spot: "true"
        topology.kubernetes.io/zone: us-central1-a
        team: vision
      containers:
        - name: sidecar
          image: proxy:1
        - name: main
          image: registry.example.com/train:7
          command: [python, train.py]
          args: [--epochs, "90"]
          env:
            - {name: NCCL_DEBUG, value: WARN}
            - {name: MASTER_ADDR, value: train-0.train}
            - {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: t}}}
          resources: {limits: {nvidia.com/gpu: 8, cpu: 90}}
)";

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

TEST_CASE("a Kubernetes Job: ranks, machine, place, container") {
  const std::string text = kubernetes(kJob);
  INFO(text);
  const auto plan = plan_of(text);
  REQUIRE(plan);
  CHECK(plan->name == "train");
  REQUIRE(plan->pools.size() == 1);
  CHECK(plan->pools[0].machine.name == "a2-highgpu-8g");
  CHECK(plan->pools[0].nodes_max == 8);
  CHECK(plan->pools[0].pricing == CapacityType::spot);
  CHECK(plan->zone == "us-central1-a");
  CHECK_THAT(text, Contains("image: \"registry.example.com/train:7\"") ||
                       Contains("image: registry.example.com/train:7"));
  CHECK_THAT(text, Contains("command: [python, train.py, \"--epochs\", 90]"));
  CHECK_THAT(text, Contains("NCCL_DEBUG: WARN"));
  CHECK_THAT(text, Contains("#   - ConfigMap settings"));
  CHECK_THAT(text, Contains("Job train: nodeSelector.team") && Contains("spec.backoffLimit"));
  CHECK_THAT(text, Contains("variables with values from the cluster: TOKEN"));
  CHECK_THAT(text, Contains("variables that reckon sets itself: MASTER_ADDR\n") &&
                       !Contains("train-0.train"));
}

TEST_CASE("pods share a node that has room for several") {
  std::string job = kJob;
  const std::string eight = "nvidia.com/gpu: 8";
  job.replace(job.find(eight), eight.size(), "nvidia.com/gpu: 4");
  const std::string zone = "team: vision";
  job.replace(job.find(zone), zone.size(), "node.kubernetes.io/instance-type: a2-highgpu-8g");
  CHECK_THAT(kubernetes(job), Contains("machine: a2-highgpu-8g\n      nodes: 4\n") &&
                                  Contains("workers: 8, accelerators_per_worker: 4"));
}

TEST_CASE("what a pod asks for and its node does not have is a mistake") {
  const auto with = [](const std::string& selector, const std::string& limits) {
    return "kind: Job\nmetadata: {name: run.v2}\nspec:\n  template:\n    spec:\n      "
           "nodeSelector: {" +
           selector + "}\n      containers: [{image: i, resources: {limits: {" + limits + "}}}]\n";
  };
  const std::string a100 = "node.kubernetes.io/instance-type: a2-highgpu-4g";
  CHECK_THAT(kubernetes(with(a100, "nvidia.com/gpu: 8")), Contains("asks for 8 accelerators"));
  CHECK_THAT(kubernetes(with(a100 + ", cloud.google.com/gke-accelerator: nvidia-tesla-t4",
                             "nvidia.com/gpu: 4")),
             Contains("the pods select T4"));
  CHECK_THAT(kubernetes(with("", "nvidia.com/mig-1g.5gb: 1")),
             Contains("pods ask for nvidia.com/mig-1g.5gb"));
  CHECK_THAT(kubernetes(with(a100, "nvidia.com/gpu: 1")),
             Contains("kind: single") && Contains("name: run-v2"));
}

TEST_CASE("labels of a required affinity, AWS zones, and lists of kubectl") {
  const std::string text = kubernetes(R"(
kind: List
items:
  - kind: Job
    metadata: {name: a}
    spec:
      template:
        spec:
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                  - matchExpressions:
                      - {key: node.kubernetes.io/instance-type, operator: In, values: [p3.16xlarge]}
                      - {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}
          containers: [{image: i, resources: {limits: {nvidia.com/gpu: 8}}}]
)");
  INFO(text);
  CHECK_THAT(text, Contains("provider: aws") && Contains("region: us-east-1\n") &&
                       Contains("machine: p3.16xlarge") && Contains("kind: mirrored"));
}

TEST_CASE("two jobs in one file are two questions") {
  const auto job = [](const std::string& name, const std::string& image) {
    return "---\nkind: Job\nmetadata: {name: " + name +
           "}\nspec: {template: {spec: {containers: [{image: " + image + "}]}}}\n";
  };
  CHECK_THAT(kubernetes(job("a", "x") + job("b", "y")), Contains("a and b are two jobs"));
  CHECK_THAT(kubernetes(job("a", "x") + job("b", "x")), Contains("nodes: 2"));
}

TEST_CASE("operators' jobs have roles") {
  const std::string tfjob = R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: tf}
spec:
  tfReplicaSpecs:
    Chief: &x {}
)";
  CHECK_THAT(kubernetes(tfjob), Contains("anchor"));
  const auto replica = [](const std::string& name, int n, int gpus) {
    return "    " + name + ":\n      replicas: " + std::to_string(n) +
           "\n      template:\n        spec:\n          containers:\n            - image: i\n" +
           "              resources: {limits: {nvidia.com/gpu: " + std::to_string(gpus) + "}}\n";
  };
  const std::string head = "kind: TFJob\nmetadata: {name: tf}\nspec:\n  tfReplicaSpecs:\n";
  const ClusterHints t4{"T4", "", std::nullopt, ""};
  const std::string text =
      kubernetes(head + replica("Chief", 1, 1) + replica("Worker", 3, 1) + replica("PS", 2, 0), t4);
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("role: chief") && Contains("role: parameter_server") &&
                       Contains("kind: parameter_server"));
  CHECK_THAT(kubernetes(head + replica("Worker", 3, 1)),
             Contains("no label says which") && Contains("--accelerator"));
}

TEST_CASE("a launcher without accelerators beside workers that have some is no rank") {
  const auto part = [](const std::string& name, int pods, int gpus) {
    return "    - name: " + name +
           "\n      template:\n        spec:\n          parallelism: " + std::to_string(pods) +
           "\n          template:\n            spec:\n              containers:\n"
           "                - image: i\n" +
           (gpus == 0 ? ""
                      : "                  resources: {limits: {nvidia.com/gpu: " +
                            std::to_string(gpus) + "}}\n");
  };
  const ClusterHints hints{"V100-SXM2-16", "", std::nullopt, ""};
  const std::string head = "kind: JobSet\nmetadata: {name: mpi}\nspec:\n  replicatedJobs:\n";
  const std::string text = kubernetes(head + part("launcher", 1, 0) + part("worker", 2, 8), hints);
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("launcher has no accelerators and the workers have: it coordinates") &&
                       Contains("its machine is paid for") && Contains("workers: 2") &&
                       Contains("role: chief"));
  // A chief beside workers without any is one of them.
  CHECK_THAT(kubernetes(head + part("chief", 1, 0) + part("worker", 2, 0)),
             Contains("role: chief") && Contains("workers: 3"));
  // What no machine carries is told by what a node would need, not a pod.
  const std::string selected =
      head + part("worker", 2, 2) +
      "              nodeSelector: {cloud.google.com/gke-accelerator: nvidia-tesla-v100, "
      "cloud.google.com/gke-accelerator-count: \"16\"}\n";
  CHECK_THAT(kubernetes(selected), Contains("no machine of gcp carries 16 x V100-SXM2-16"));
}

TEST_CASE("the pods of an article, without a name, a label or a job around them") {
  const std::string gpus = R"(apiVersion: v1
kind: Pod
spec:
 containers:
 - name: mi-gpu-container
   resources:
     limits:
      nvidia.com/gpu: 2
)";
  CHECK_THAT(kubernetes(gpus), Contains("pod asks for 2 accelerators, and no label says which") &&
                                   Contains("--accelerator"));
  CHECK_THAT(kubernetes(gpus, {.accelerator = "nvidia-tesla-p100"}),
             Contains("accelerator: {type: nvidia-tesla-p100, count: 2}") &&
                 Contains("{kind: mirrored, accelerators_per_worker: 2}"));
  CHECK_THAT(kubernetes("kind: Pod\nspec: {containers: [{name: c, resources: {limits: "
                        "{cloud-tpus.google.com/v2: 8}}}]}\n"),
             Contains("tpu: {type: TPU-v2, slice: v2-8}") && Contains("{kind: tpu}"));
}

TEST_CASE("a machine is chosen that holds what the pods ask for beside their GPUs") {
  const auto job = [](const std::string& asked) {
    return "kind: Job\nmetadata: {name: t}\nspec: {parallelism: 2, template: {spec: {nodeSelector: "
           "{cloud.google.com/gke-accelerator: nvidia-tesla-t4}, containers: [{name: c, image: i, "
           "resources: {limits: {nvidia.com/gpu: 1}, requests: {" +
           asked + "}}}]}}}\n";
  };
  CHECK_THAT(kubernetes(job("")), Contains("machine: n1-highcpu-8"));              // 7.2 GiB
  CHECK_THAT(kubernetes(job("memory: 40Gi")), Contains("machine: n1-highmem-8"));  // 52 GiB
  CHECK_THAT(kubernetes(job("cpu: 12500m")), Contains("machine: n1-highcpu-16"));
  CHECK_THAT(
      kubernetes(job("memory: 4000Gi")),
      Contains("no machine with 1 x T4 has the 0 vCPUs and 3.91 TiB that pods of t ask for"));
  CHECK_THAT(kubernetes(job("memory: 4 gigs")), Contains("'4 gigs' is no amount of memory"));
}

TEST_CASE("where no label says the region, the first is taken where all has a price") {
  const std::string text = kubernetes(
      "kind: Job\nmetadata: {name: t}\nspec: {template: {spec: {nodeSelector: "
      "{cloud.google.com/gke-accelerator: nvidia-tesla-t4}, containers: [{name: c, image: i, "
      "resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n");
  const auto file = parse_scenario(text, "t.yaml");
  if (!file) FAIL(format(file.error()));
  const auto plan = make_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  CHECK(plan->pools.front().price.known);
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

TEST_CASE("files without a job, and jobs with values of the wrong kind") {
  CHECK_THAT(
      kubernetes("kind: Service\nmetadata: {name: web}\n"),
      Contains("no Job, JobSet, TFJob, PyTorchJob or Pod is in it") && Contains("Service web"));
  CHECK_THAT(
      kubernetes("kind: Job\nspec: {parallelism: many, template: {spec: {containers: 3}}}\n"),
      Contains("takes a whole number") && Contains("'containers' takes a list"));
  CHECK_THAT(kubernetes("a: [\n"), Contains("job.yaml:"));
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
