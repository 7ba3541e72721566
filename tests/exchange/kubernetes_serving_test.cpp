#include "exchange/kubernetes_serving.h"

#include <catch2/catch.hpp>

#include "support/golden.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kService = R"(
name: Image Classes
serving:
  model: resnet50_v1_5
  precision: fp16
  requests_per_second: 100
  batch: {max: 8, wait: 2ms}
  replicas: {min: 1, max: 4, standby: 1, target_utilization: 60%}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-a
  pools:
    - {name: t4, role: inference, machine: n1-standard-4, accelerator: {type: T4}, nodes: 5}
)";

std::string exported(ServerKind kind, const KubernetesExport& how = {},
                     const std::vector<std::string>& overrides = {},
                     const std::string& text = kService) {
  const auto file = parse_scenario(text, "s.yaml", overrides);
  if (!file) FAIL(format(file.error()));
  const auto plan = make_serving_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  return serving_manifests(*plan, shipped_catalog(), kind, how);
}

}  // namespace

TEST_CASE("a service is a deployment behind a load balancer, scaled by its use") {
  check_golden("exchange/golden/serving.yaml", exported(ServerKind::reckon));
}

TEST_CASE("a model of one's own is answered by TensorFlow Serving at 8500 and 8501") {
  const std::string yaml = exported(ServerKind::tensorflow_serving);
  check_golden("exchange/golden/tensorflow-serving.yaml", yaml);
  CHECK_THAT(yaml, Contains("containerPort: 8500") && Contains("containerPort: 8501"));
  CHECK_THAT(yaml, Contains("MODEL_NAME"));
  CHECK_THAT(yaml, Contains("type: LoadBalancer"));
}

TEST_CASE("before 1.23 the autoscaler is v2beta2") {
  CHECK_THAT(exported(ServerKind::reckon, {.minor = 20}), Contains("autoscaling/v2beta2"));
  CHECK_THAT(exported(ServerKind::reckon, {.minor = 23}), Contains("autoscaling/v2\n"));
}

TEST_CASE("a fixed number of replicas has no autoscaler, and the deployment says the number") {
  const std::string yaml = exported(ServerKind::reckon, {}, {"serving.replicas=3"});
  CHECK_THAT(yaml, !Contains("HorizontalPodAutoscaler"));
  CHECK_THAT(yaml, Contains("replicas: 3"));
  CHECK_THAT(yaml, !Contains("standby"));
}

TEST_CASE("replicas on CPUs are scaled by the use of CPUs") {
  std::string text = kService;
  const std::string gpu = "accelerator: {type: T4}, ";
  text.erase(text.find(gpu), gpu.size());
  const std::string yaml = exported(ServerKind::reckon, {}, {"serving.precision=fp32"}, text);
  CHECK_THAT(yaml, Contains("averageUtilization: 60"));
  CHECK_THAT(yaml, !Contains("nvidia.com/gpu"));
}
