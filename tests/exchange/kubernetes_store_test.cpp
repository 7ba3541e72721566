#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "cluster_artifact.h"
#include "exchange/kubernetes/kubernetes.h"
#include "support/golden.h"
#include "support/scenario_text.h"

// Pods with samples in a store, whose keys are in a Secret, and with checkpoints on their nodes.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string photos(const std::string& data, const std::string& checkpoint = "{interval: 1h}",
                   const std::string& strategy = "{kind: multi_worker_mirrored, workers: 2}",
                   const std::string& pools = "") {
  return "name: photos\nworkload:\n  model: resnet50\n  dataset: imagenet\n"
         "  data: " +
         data +
         "\n  train: {epochs: 1}\n  precision: fp32\n  batch_per_accelerator: 32\n  strategy: " +
         strategy + "\n  checkpoint: " + checkpoint +
         "\ncluster:\n  provider: gcp\n  service: gke\n  region: us-central1\n"
         "  zone: us-central1-c\n  pools:\n"
         "    - {name: cpus, role: worker, machine: n1-standard-8, nodes: 2}\n" +
         pools;
}

Expected<std::string> manifests_of_photos(const std::string& text, const KubernetesExport& how) {
  const Expected<ScenarioFile> file = parse_scenario(text, "s.yaml");
  if (!file) FAIL(format(file.error()));
  const Expected<Plan> plan = make_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  auto yaml = kubernetes_manifests(artifact_for_cluster(*file, *plan), how, file->places);
  if (yaml) return without_plan(*yaml);
  return yaml;
}

constexpr const char* kInStore = "{format: webdataset, path: s3://photos/train-}";
constexpr const char* kOnNodes = "{interval: 1h, local: {to: local_disk, every: 1min}}";

std::size_t times_in(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("pods get the keys to a store out of a Secret, which the manifests name") {
  const auto with = manifests_of_photos(photos(kInStore), {.store_secret = "photo-keys"});
  REQUIRE(with);
  CHECK_THAT(*with, Contains("            - name: AWS_ACCESS_KEY_ID\n"
                             "              valueFrom:\n"
                             "                secretKeyRef:\n"
                             "                  name: photo-keys\n"
                             "                  key: AWS_ACCESS_KEY_ID\n"
                             "            - name: AWS_SECRET_ACCESS_KEY\n"));
  CHECK_THAT(*with, Contains("                  key: AWS_SESSION_TOKEN\n"
                             "                  optional: true\n") &&
                        Contains("                  key: AWS_REGION\n"
                                 "                  optional: true\n"));
  const auto without = manifests_of_photos(photos(kInStore), {});
  REQUIRE(without);
  CHECK_THAT(*without, !Contains("AWS_"));
}

TEST_CASE("parameter servers read no samples, and get no keys") {
  const auto yaml = manifests_of_photos(
      photos(kInStore, "{interval: 1h}",
             "{kind: parameter_server, workers: 2, parameter_servers: 1}",
             "    - {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}\n"),
      {.store_secret = "photo-keys"});
  REQUIRE(yaml);
  CHECK(times_in(*yaml, "key: AWS_ACCESS_KEY_ID") == 1);  // of the workers' template
}

TEST_CASE("pods may talk to the store that their samples are in, and only then to the outside") {
  const auto port = [](const std::string& endpoint) {
    const auto yaml = manifests_of_photos(
        photos("{format: webdataset, path: s3://photos/train-" +
               (endpoint.empty() ? "" : ", endpoint: '" + endpoint + "'") + "}"),
        {});
    REQUIRE(yaml);
    const auto egress = yaml->find("  egress:");
    REQUIRE(egress != std::string::npos);
    const auto last = yaml->rfind("port: ", yaml->find("---", egress));
    return yaml->substr(last + 6, yaml->find('\n', last) - last - 6);
  };
  CHECK(port("") == "443");
  CHECK(port("https://store.example.com") == "443");
  CHECK(port("http://store.example.com/") == "80");
  CHECK(port("http://store.minio.svc:9000") == "9000");
  CHECK(port("https://[fd00::1]:9443/base") == "9443");
  CHECK(port("http://[fd00::1]") == "80");
  const auto made_up = manifests_of_photos(photos("{format: synthetic}"), {});
  REQUIRE(made_up);
  CHECK_THAT(*made_up, !Contains("port: 443"));
}

TEST_CASE("pods keep checkpoints in a directory of their nodes, where one is named") {
  const auto yaml =
      manifests_of_photos(photos(kInStore, kOnNodes), {.node_directory = "/mnt/disks/ssd0"});
  if (!yaml) FAIL(format(yaml.error()));
  CHECK_THAT(*yaml, Contains("            - \"--node-dir\"\n            - /node/photos\n") &&
                        Contains("            - name: node\n              mountPath: /node\n") &&
                        Contains("        - name: node\n"
                                 "          hostPath:\n"
                                 "            path: /mnt/disks/ssd0\n"
                                 "            type: Directory\n"));
  CHECK_THAT(*yaml, Contains("pod-security.kubernetes.io/enforce: privileged"));
  CHECK_THAT(*yaml, !Contains("--one-tier"));
}

TEST_CASE("pods without a directory of their nodes save in the storage alone") {
  const auto yaml = manifests_of_photos(photos(kInStore, kOnNodes), {});
  REQUIRE(yaml);
  CHECK_THAT(*yaml, Contains("            - \"--one-tier\"\n") && !Contains("hostPath") &&
                        Contains("pod-security.kubernetes.io/enforce: restricted"));
}

TEST_CASE("a directory of the nodes goes with a plan that saves there") {
  const auto yaml = manifests_of_photos(photos(kInStore), {.node_directory = "/mnt/disks/ssd0"});
  REQUIRE_FALSE(yaml);
  CHECK_THAT(format(yaml.error()),
             Contains("s.yaml:") && Contains("the plan's pods save nothing there") &&
                 Contains("workload.checkpoint.local: {to: local_disk, every: 1min}"));
}
