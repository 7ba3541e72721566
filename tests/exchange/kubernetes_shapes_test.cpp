#include <catch2/catch.hpp>

#include "cluster_artifact.h"
#include "exchange/gcloud.h"
#include "exchange/kubernetes/kubernetes.h"
#include "support/golden.h"
#include "support/scenario_text.h"

// The same plan in every shape that clusters take, and what a cloud's nodes are asked for by.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kP100 = R"(
name: p100
workload:
  model: resnet50_v1_5
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
  checkpoint: {interval: 10min}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools:
    - name: p100
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: {initial: 3, min: 0, max: 5}
      autoscaling: true
      pricing: spot
)";

const std::string kSlice = R"(
name: slice
workload:
  model: resnet50_v1_5
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 256
  strategy: {kind: tpu}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-b
  pools:
    - {name: slice, tpu: {type: TPU-v2, slice: v2-8}}
)";

struct Loaded {
  ScenarioFile file;
  Plan plan;
};
Loaded loaded(const std::string& text) {
  Expected<ScenarioFile> file = parse_scenario(text, "s.yaml");
  if (!file) FAIL(format(file.error()));
  Expected<Plan> plan = make_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  return {std::move(*file), std::move(*plan)};
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  return text.replace(text.find(part), part.size(), by);
}

std::string exported_shapes(const std::string& text, const KubernetesExport& how) {
  const Loaded l = loaded(text);
  const auto yaml = kubernetes_manifests(artifact_for_cluster(l.file, l.plan), how, l.file.places);
  if (!yaml) FAIL(format(yaml.error()));
  return without_plan(*yaml);
}

}  // namespace

TEST_CASE("the same plan as a job and in the shapes of operators") {
  const std::vector<std::pair<JobShape, std::string>> shapes{{JobShape::job, "job"},
                                                             {JobShape::tfjob, "tfjob"},
                                                             {JobShape::pytorchjob, "pytorchjob"},
                                                             {JobShape::jobset, "jobset"},
                                                             {JobShape::trainjob, "trainjob"},
                                                             {JobShape::launcher, "launcher"}};
  for (const auto& [shape, name] : shapes) {
    INFO(name);
    check_golden(
        "exchange/golden/p100-" + name + ".yaml",
        exported_shapes(
            kP100, {.minor = 31, .as = shape, .bucket = shape == JobShape::launcher ? "" : "b"}));
  }
}

TEST_CASE("a launcher in the cluster keeps its records on the job's claim, not in a bucket") {
  const std::string claim =
      exported_shapes(kP100, {.minor = 31, .as = JobShape::launcher, .claim = "shared"});
  CHECK_THAT(claim, Contains("claimName: shared") &&
                        Contains("\"/checkpoints/p100/launcher/$(LAUNCHER)\"") &&
                        !Contains("kind: PersistentVolumeClaim"));
  const std::string bucket =
      exported_shapes(kP100, {.minor = 31, .as = JobShape::launcher, .bucket = "b"});
  CHECK_THAT(bucket, Contains("- /tmp/run\n") && Contains("name: RECKON_HISTORY") &&
                         !Contains("claimName") && !Contains("/checkpoints"));
}

TEST_CASE("an MPIJob's launcher starts the program in the workers, with the pods' variables") {
  const std::string own = replaced(
      kP100, "  model: resnet50_v1_5\n",
      "  container: {image: \"mine:1\", command: [python, train.py, --lr, \"$(LR)\"], env: "
      "{LR: \"0.1\"}, profile: resnet50_v1_5}\n");
  check_golden("exchange/golden/p100-mpijob.yaml",
               exported_shapes(own, {.minor = 31, .as = JobShape::mpijob, .bucket = "b"}));
  const Loaded l = loaded(kP100);
  const auto refused = kubernetes_manifests(artifact_for_cluster(l.file, l.plan),
                                            {.as = JobShape::mpijob, .bucket = "b"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(format(refused.error()), Contains("mpirun starts programs of yours"));
}

TEST_CASE("wrong arguments fail a job, stops and losses are tried again, where versions can") {
  const std::string yaml = exported_shapes(kP100, {.minor = 31, .bucket = "b"});
  CHECK_THAT(yaml, Contains("podFailurePolicy:\n    rules:\n      - action: FailJob\n") &&
                       Contains("          values:\n            - 2\n") &&
                       Contains("          values:\n            - 75\n            - 76\n"));
  CHECK_THAT(exported_shapes(kP100, {.minor = 24, .bucket = "b"}), !Contains("podFailurePolicy"));
}

TEST_CASE("spot nodes of GKE are chosen and tolerated, and a pod ends within their notice") {
  const std::string yaml = exported_shapes(kP100, {.minor = 31, .bucket = "b"});
  CHECK_THAT(yaml, Contains("cloud.google.com/gke-accelerator: nvidia-tesla-p100\n") &&
                       Contains("cloud.google.com/gke-spot: \"true\"\n") &&
                       Contains("- key: cloud.google.com/gke-spot\n") &&
                       Contains("- key: nvidia.com/gpu\n") && Contains("nvidia.com/gpu: 2\n") &&
                       Contains("terminationGracePeriodSeconds: 15\n"));
}

TEST_CASE("a TPU of the second generation is a resource of the pod in cores") {
  for (const int minor : {20, 25})
    CHECK_THAT(exported_shapes(kSlice, {.minor = minor, .bucket = "b"}),
               Contains("cloud-tpus.google.com/v2: 8\n"));
  // From 1.26 on TPUs are nodes, and there are none of that generation; of the third there are.
  const Loaded l = loaded(kSlice);
  const auto refused =
      kubernetes_manifests(artifact_for_cluster(l.file, l.plan), {.minor = 26, .bucket = "b"});
  REQUIRE(!refused);
  CHECK_THAT(format(refused.error()),
             Contains("there are none with TPU-v2") && Contains("--kubernetes-version 1.25"));
  const std::string third = replaced(replaced(kSlice, "TPU-v2", "TPU-v3"), "v2-8", "v3-8");
  CHECK_THAT(exported_shapes(third, {.minor = 25, .bucket = "b"}),
             Contains("cloud-tpus.google.com/v3: 8\n"));
  const std::string nodes = exported_shapes(third, {.minor = 31, .bucket = "b"});
  CHECK_THAT(nodes, Contains("google.com/tpu: 4\n") && !Contains("cloud-tpus"));
  CHECK_THAT(nodes, Contains("cloud.google.com/gke-tpu-topology: \"2x2\"\n"));
}

TEST_CASE("pods with a bucket may ask the metadata server who they are") {
  CHECK_THAT(exported_shapes(kP100, {.minor = 31, .bucket = "b"}),
             Contains("cidr: \"169.254.169.254/32\"") && Contains("cidr: \"169.254.169.252/32\"") &&
                 Contains("port: 988\n"));
  // Without one its address is that of Cloud DNS alone, at the port of name servers.
  CHECK_THAT(exported_shapes(kP100, {.minor = 31, .claim = "c"}),
             !Contains("169.254.169.252") && !Contains("port: 80\n") && !Contains("port: 988\n"));
}

TEST_CASE("pools are made with the flags that people type") {
  const Loaded l = loaded(kP100);
  const auto commands = gcloud_commands(l.file, l.plan);
  REQUIRE(commands);
  CHECK_THAT(*commands, Contains("gcloud container node-pools create p100 \\\n"
                                 "    --cluster=p100 \\\n"
                                 "    --zone=us-central1-c \\\n"
                                 "    --machine-type=n1-standard-16 \\\n"
                                 "    --accelerator=type=nvidia-tesla-p100,count=2 \\\n"
                                 "    --num-nodes=3 \\\n"
                                 "    --enable-autoscaling \\\n"
                                 "    --min-nodes=0 \\\n"
                                 "    --max-nodes=5 \\\n"
                                 "    --spot\n"));
  const Loaded tpu = loaded(kSlice);
  const auto slice = gcloud_commands(tpu.file, tpu.plan);
  REQUIRE(slice);
  CHECK_THAT(*slice, Contains("--enable-tpu"));
}
