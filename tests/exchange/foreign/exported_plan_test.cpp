#include <catch2/catch.hpp>

#include "exchange/foreign/exported_plan.h"
#include "exchange/kubernetes/kubernetes.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;

namespace {

const std::string kMirrored = R"(name: theirs
workload:
  container: {image: "registry.example/train:3", command: [python, train.py], profile: resnet50}
  dataset: imagenet
  train: {epochs: 90}
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored, workers: 4, accelerators_per_worker: 2}
cluster:
  provider: gcp
  region: us-central1
  pools:
    - name: p100
      role: worker
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: {initial: 4, min: 0, max: 5}
      autoscaling: true
      pricing: spot
)";
const std::string kServers = R"(name: theirs
workload:
  container: {image: "registry.example/train:3", command: [python, train.py], profile: resnet50}
  dataset: imagenet
  train: {epochs: 90}
  batch_per_accelerator: 64
  strategy: {kind: parameter_server, workers: 4, parameter_servers: 2, mode: asynchronous}
cluster:
  provider: gcp
  region: us-central1
  pools:
    - {name: k80, role: worker, machine: n1-standard-8, accelerator: {type: K80}, nodes: 4}
    - {name: servers, role: parameter_server, machine: n1-highmem-8, nodes: 2}
)";

std::string exported_plan_files(const std::string& scenario, JobShape as) {
  const auto file = parse_scenario(scenario, "s.yaml");
  if (!file) FAIL(format(file.error()));
  const auto plan = make_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  KubernetesExport how;
  how.as = as;
  RunArtifact artifact{.plan = *plan, .scenario = scenario};
  if (file->scenario.workload) artifact.container = file->scenario.workload->container;
  const auto text = kubernetes_manifests(for_cluster(artifact, shipped_catalog()), how);
  if (!text) FAIL(format(text.error()));
  return *text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.rfind(from); at != std::string::npos; at = text.rfind(from, at))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("manifests of every kind give back the scenario that they were exported from") {
  for (const JobShape kind :
       {JobShape::job, JobShape::tfjob, JobShape::pytorchjob, JobShape::jobset, JobShape::trainjob})
    for (const std::string& scenario : {kMirrored, kServers}) {
      const bool alike = kind == JobShape::pytorchjob || kind == JobShape::trainjob;
      if (alike && scenario == kServers) continue;  // has no servers
      const auto found =
          exported_plan_of(exported_plan_files(scenario, kind), "job.yaml", shipped_catalog());
      REQUIRE(found.has_value());
      REQUIRE(found->has_value());
      CHECK((*found)->ends_with("\n" + scenario));
    }
}

TEST_CASE("manifests that were changed since no longer stand for the scenario in them") {
  const std::string text = exported_plan_files(kMirrored, JobShape::job);
  const auto unchanged = exported_plan_of(text, "job.yaml", shipped_catalog());
  REQUIRE((unchanged && *unchanged));
  for (const auto& [from, to] : {std::pair{"parallelism: 4", "parallelism: 3"},
                                 std::pair{"image: \"registry.example/train:3\"\n",
                                           "image: \"registry.example/train:4\"\n"}}) {
    const std::string edited = replaced(text, from, to);
    REQUIRE(edited != text);
    const auto found = exported_plan_of(edited, "job.yaml", shipped_catalog());
    REQUIRE(found.has_value());
    CHECK_FALSE(found->has_value());
  }
}
