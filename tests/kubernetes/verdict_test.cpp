#include <catch2/catch.hpp>

#include "kubernetes/cluster.h"

// Jobs that a cluster cannot run, told before or after they are given to it. Nodes are played by
// the kit's fake-nodes: 8 GPUs each.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string gpu_job_manifest(const std::string& name, int workers, int per_worker) {
  return "name: " + name +
         "\nworkload:\n"
         "  container: {image: \"localhost/none:1\", command: [train], profile: resnet50}\n"
         "  dataset: imagenet\n"
         "  train: {steps: 1000}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: {kind: multi_worker_mirrored, workers: " +
         std::to_string(workers) +
         "}\n"
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n"
         "    - name: gpus\n"
         "      machine: {vcpu: 8, memory: 32GiB, network: 10Gbps}\n"
         "      accelerator: {type: P100-PCIE-16, count: " +
         std::to_string(per_worker) + "}\n      nodes: " + std::to_string(workers) + "\n";
}

const char* const kOptions = " --on kubernetes --replications 20 --claim checkpoints --out run";

}  // namespace

TEST_CASE("what a cluster cannot run is said before anything is applied, all at once") {
  const Cluster cluster(Cluster::Parts::control_plane, "--fake-nodes 2");
  REQUIRE(wait_for([&] { return cluster.get("nodes").at("items").size() == 2; }));
  const Workspace w;
  cluster.make_space("small", w);
  w.write("large.yaml", gpu_job_manifest("large", 2, 16));
  w.write("many.yaml", gpu_job_manifest("many", 5, 8));
  w.write("fits.yaml", gpu_job_manifest("fits", 2, 8));
  const auto reckon = [&](const std::string& words) { return w.run(words, cluster.environment()); };

  // Ours, with an optimizer that it does not apply.
  std::string own = gpu_job_manifest("own", 2, 8);
  const std::string container =
      "container: {image: \"localhost/none:1\", command: [train], profile: resnet50}";
  own.replace(own.find(container), container.size(), "model: resnet50");
  w.write("own.yaml", own);
  const Output ours = reckon(
      "run own.yaml --set workload.optimizer.kind=lion --namespace small --image localhost/none:1 "
      "--pull-secret key" +
      std::string(kOptions));
  CHECK(ours.code == 2);
  CHECK_THAT(ours.err,
             Contains("does not apply optimizer lion") && Contains("there is no secret 'key'"));

  const Output large = reckon(std::string("run large.yaml --namespace small") + kOptions);
  CHECK(large.code == 1);
  CHECK_THAT(large.err, Contains("no node has room for a pod of job large-0-worker-0"));
  CHECK_THAT(large.err, Contains("8 nvidia.com/gpu where 16 nvidia.com/gpu is asked for"));

  const Output many = reckon(std::string("run many.yaml --namespace small") + kOptions);
  CHECK(many.code == 1);
  CHECK_THAT(many.err, Contains("the nodes have room for 2 of 5 pods"));

  cluster.kubectl("apply -f -", R"(apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: small}
spec: {hard: {requests.nvidia.com/gpu: "8"}}
)");
  const auto counted = [&] {
    return cluster.get("resourcequota few -n small").at("status").contains("hard");
  };
  REQUIRE(wait_for(counted));
  const Output quota =
      reckon("run fits.yaml --namespace small --pull-secret key" + std::string(kOptions));
  CHECK(quota.code == 3);
  CHECK_THAT(quota.err, Contains("quota few leaves 8 of requests.nvidia.com/gpu, and the job asks "
                                 "for 16"));
  CHECK_THAT(quota.err, Contains("there is no secret 'key' in namespace small"));

  cluster.kubectl("delete resourcequota few -n small");
  const Output dry = reckon(std::string("run fits.yaml --namespace small --dry-run") + kOptions);
  INFO(dry.err);
  CHECK(dry.code == 0);
  CHECK_THAT(dry.out, Contains("name: fits-0-worker-1"));
  CHECK(cluster.get("jobs -n small").at("items").empty());

  // The cluster as a scenario: two nodes of eight accelerators that no label names.
  const Output unknown = reckon("import cluster");
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, Contains("no label says what it is"));
  const Output now = reckon("import cluster --accelerator P100-PCIE-16 --out now.yaml");
  INFO(now.err);
  CHECK(now.code == 0);
  CHECK_THAT(read_all(w.path("now.yaml")),
             Contains("machine: {vcpu: 96, memory: 1000GiB, network: 10Gbps}") &&
                 Contains("accelerator: {type: P100-PCIE-16, count: 8}") && Contains("nodes: 2\n"));
  CHECK(w.run("simulate now.yaml --replications 5").code == 0);

  // Somebody else is on the nodes: it would fit, and never does.
  cluster.kubectl("apply -f -", R"(apiVersion: batch/v1
kind: Job
metadata: {name: other, namespace: small}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {fake/run-seconds: "600"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
)");
  REQUIRE(wait_for([&] {
    return cluster.get("pods -n small --field-selector status.phase=Running").at("items").size() ==
           2;
  }));
  CHECK_THAT(reckon("import cluster --accelerator P100-PCIE-16").out,
             Contains("all of its 2 nodes are in use"));
  const Output full =
      reckon(std::string("run fits.yaml --namespace small --pending 3s") + kOptions);
  INFO(full.err);
  CHECK(full.code == 1);
  CHECK_THAT(full.out, Contains("has no node after 3"));
  CHECK_THAT(full.out, Contains("Insufficient nvidia.com/gpu"));
  const Output again = reckon("run --on kubernetes --attach fits --namespace small --out run");
  CHECK(again.code == 1);
  CHECK_THAT(again.out, Contains("fits: failed"));
}
