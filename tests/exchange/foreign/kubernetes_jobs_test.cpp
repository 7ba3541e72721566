#include "exchange/foreign/kubernetes_jobs.h"

#include <catch2/catch.hpp>

#include "exchange/foreign/imports.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

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

TEST_CASE("files without a job, and jobs with values of the wrong kind") {
  CHECK_THAT(kubernetes("kind: Service\nmetadata: {name: web}\n"),
             Contains("no Job, JobSet, TFJob, PyTorchJob, TrainingRuntime or Pod is in it") &&
                 Contains("Service web"));
  CHECK_THAT(
      kubernetes("kind: Job\nspec: {parallelism: many, template: {spec: {containers: 3}}}\n"),
      Contains("takes a whole number") && Contains("'containers' takes a list"));
  CHECK_THAT(kubernetes("a: [\n"), Contains("job.yaml:"));
}
