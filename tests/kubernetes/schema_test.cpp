#include <catch2/catch.hpp>

#include "cli/run_reckon.h"
#include "exchange/kubernetes/kubernetes.h"
#include "executor/train/records/pod_orders.h"
#include "kubernetes/cluster.h"
#include "support/scenario_text.h"
#include "support/skip.h"

// The manifests that `reckon run --on kubernetes` applies, against the schemas that Kubernetes and
// the operators publish: the kit's `validate`, which needs no cluster.
using namespace reckon;
using namespace reckon::test;

namespace {

std::string scenario(const std::string& program, const std::string& strategy,
                     const std::string& pools) {
  return "name: checked\n"
         "workload:\n  " +
         program +
         "\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 1}\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: " +
         strategy +
         "\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  service: gke\n"
         "  region: us-central1\n"
         "  zone: us-central1-c\n"
         "  pools:\n" +
         pools;
}
const std::string kOurs = "model: resnet50";
const std::string kTheirs =
    "container: {image: \"my/image:3\", command: [python, train.py, --job-dir], env: {LR: "
    "\"0.1\"}, "
    "profile: resnet50, metrics: {prometheus: \":9100\"}}";
const std::string kWorkers =
    "    - {name: gpus, machine: n1-standard-8, accelerator: {type: V100-SXM2-16, count: 1}, "
    "nodes: 3, pricing: spot}\n";
const std::string kServers =
    "    - {name: servers, role: parameter_server, machine: n1-highmem-8, nodes: 2}\n";

struct Case {
  const char* name;
  std::string text;
};
std::vector<Case> cases() {
  const std::string ring = "{kind: multi_worker_mirrored, workers: 3}";
  const std::string served = "{kind: parameter_server, workers: 3, parameter_servers: 2}";
  return {{"ring", scenario(kOurs, ring, kWorkers)},
          {"served", scenario(kOurs, served, kWorkers + kServers)},
          {"their-ring", scenario(kTheirs, ring, kWorkers)},
          {"their-served", scenario(kTheirs, served, kWorkers + kServers)},
          {"slice", scenario(kOurs, "{kind: tpu}",
                             "    - {name: slice, tpu: {type: TPU-v6e, slice: v6e-8}}\n")}};
}

/// Files of all cases for a version of Kubernetes, as words of the shell.
std::string write_manifests(const Workspace& w, int minor) {
  std::string files;
  for (const Case& c : cases()) {
    const Expected<ScenarioFile> file = parse_scenario(c.text, "s.yaml");
    REQUIRE(file);
    const Expected<Plan> plan = make_plan(*file, shipped_catalog());
    if (!plan) FAIL(format(plan.error()));
    for (const bool watched : {true, false}) {
      const KubernetesExport how{.minor = minor,
                                 .storage_class = "standard-rwx",
                                 .attempt = watched ? 0 : 1,
                                 .pull_secret = "key",
                                 .watched = watched,
                                 .run_started = "2026-11-22T03:00:00.000Z"};
      const auto yaml = kubernetes_manifests(
          for_cluster(
              {.plan = *plan, .container = file->scenario.workload->container, .scenario = c.text},
              shipped_catalog()),
          how, file->places);
      if (!yaml) FAIL(c.name << ": " << format(yaml.error()));
      const std::string name =
          std::string(c.name) + (watched ? "-watched-" : "-") + std::to_string(minor) + ".yaml";
      w.write(name, *yaml);
      files += ' ' + name;
    }
  }
  return files;
}

}  // namespace

TEST_CASE("manifests of runs are valid in the versions of Kubernetes from 1.28 to 1.36") {
  const std::string kit = kit_folder();
  if (kit.empty()) skip_test("no Kubernetes kit: RECKON_KUBERNETES_KIT names none");
  const Workspace w;
  if (w.run_shell("python3 -c 'import jsonschema, yaml'").code != 0)
    skip_test("python3-jsonschema or python3-yaml is not here");
  // What is written for a version is valid in it; for the oldest also in all later ones.
  const std::string oldest = write_manifests(w, 28);
  const Output all = w.run_shell("python3 '" + kit + "/validate'" + oldest);
  INFO(all.out << all.err);
  CHECK(all.code == 0);
  for (const int minor : {31, 34, 36}) {
    const std::string files = write_manifests(w, minor);
    const Output one = w.run_shell("python3 '" + kit + "/validate' --kubernetes 1." +
                                   std::to_string(minor) + files);
    INFO(one.out << one.err);
    CHECK(one.code == 0);
  }
}

TEST_CASE("manifests in the shapes of operators are valid by the operators' own definitions") {
  const std::string kit = kit_folder();
  if (kit.empty()) skip_test("no Kubernetes kit: RECKON_KUBERNETES_KIT names none");
  const Workspace w;
  if (w.run_shell("python3 -c 'import jsonschema, yaml'").code != 0)
    skip_test("python3-jsonschema or python3-yaml is not here");
  std::string files;
  for (const Case& c : cases())
    for (const auto& shape : words_of(JobShape{})) {
      const Expected<ScenarioFile> file = parse_scenario(c.text, "s.yaml");
      REQUIRE(file);
      const Expected<Plan> plan = make_plan(*file, shipped_catalog());
      REQUIRE(plan);
      const auto yaml = kubernetes_manifests(
          for_cluster(
              {.plan = *plan, .container = file->scenario.workload->container, .scenario = c.text},
              shipped_catalog()),
          {.as = shape.value, .storage_class = "standard-rwx", .pull_secret = "key"}, file->places);
      if (!yaml) continue;  // refused by name: servers of a PyTorchJob
      const std::string name = std::string(c.name) + "-" + std::string(shape.text) + ".yaml";
      w.write(name, *yaml);
      files += ' ' + name;
    }
  for (const char* shape : {"mpijob", "trainjob"})
    CHECK(files.find("their-ring-" + std::string(shape) + ".yaml") != std::string::npos);
  const Output all = w.run_shell("python3 '" + kit + "/validate'" + files);
  INFO(all.out << all.err);
  CHECK(all.code == 0);
}

TEST_CASE("the annotation that a launcher writes is the one that standing pods read") {
  CHECK(std::string(kStartAnnotation) == kPodStartAnnotation);
}
