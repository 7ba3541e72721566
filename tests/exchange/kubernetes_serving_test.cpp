#include "exchange/kubernetes/serving.h"

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

/// kService without its accelerators, as our own server wants it.
std::string on_cpus() {
  std::string text = kService;
  const auto replace = [&](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace(", accelerator: {type: T4}", "");
  replace("precision: fp16", "precision: fp32");
  return text;
}

ServingPlan service_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto file = parse_scenario(text, "s.yaml", overrides);
  if (!file) FAIL(format(file.error()));
  auto plan = make_serving_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  return std::move(*plan);
}

std::string exported(ServerKind kind, const KubernetesExport& how = {},
                     const std::vector<std::string>& overrides = {}) {
  const std::string text = kind == ServerKind::reckon ? on_cpus() : kService;
  return serving_manifests(service_of(text, overrides), shipped_catalog(), kind, how);
}

std::string clients_override(const std::string& network) {
  return "serving.clients=['" + network + "']";
}

}  // namespace

TEST_CASE("a service is a deployment with an address, scaled by its use") {
  check_golden("exchange/golden/serving.yaml", exported(ServerKind::reckon));
}

TEST_CASE("a model of one's own is answered by TensorFlow Serving at 8500 and 8501") {
  const std::string yaml = exported(ServerKind::tensorflow_serving);
  check_golden("exchange/golden/tensorflow-serving.yaml", yaml);
  CHECK_THAT(yaml, Contains("containerPort: 8500") && Contains("containerPort: 8501"));
  CHECK_THAT(yaml, Contains("MODEL_NAME"));
  CHECK_THAT(yaml, Contains("type: ClusterIP"));
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

TEST_CASE("replicas on CPUs are scaled by the use of CPUs, those on accelerators by theirs") {
  const std::string ours = exported(ServerKind::reckon);
  CHECK_THAT(ours, Contains("averageUtilization: 60") && !Contains("DCGM_FI_DEV_GPU_UTIL"));
  CHECK_THAT(ours, !Contains("nvidia.com/gpu"));
  const std::string theirs = exported(ServerKind::tensorflow_serving);
  CHECK_THAT(theirs, Contains("DCGM_FI_DEV_GPU_UTIL") && Contains("nvidia.com/gpu"));
}

TEST_CASE("accelerators that our server would not use are not asked for") {
  const auto reason = why_not_exported(service_of(kService), ServerKind::reckon);
  REQUIRE(reason);
  CHECK_THAT(*reason, Contains("pool t4") && Contains("--as tensorflow-serving"));
  CHECK_FALSE(why_not_exported(service_of(kService), ServerKind::tensorflow_serving));
  CHECK_FALSE(why_not_exported(service_of(on_cpus()), ServerKind::reckon));
}

TEST_CASE("our server waits by itself before it ends: its image has nothing to sleep with") {
  const std::string ours = exported(ServerKind::reckon);
  CHECK_THAT(ours, Contains("--linger") && !Contains("preStop"));
  CHECK_THAT(exported(ServerKind::tensorflow_serving), Contains("preStop") && Contains("sleep"));
}

TEST_CASE("a service is reached from where the scenario says, by default by the cluster's pods") {
  for (const ServerKind kind : {ServerKind::reckon, ServerKind::tensorflow_serving}) {
    const std::string inside = exported(kind);
    CHECK_THAT(inside, Contains("type: ClusterIP") && !Contains("LoadBalancer"));
    const std::string ingress = inside.substr(inside.find("ingress:\n"),
                                              inside.find("egress:\n") - inside.find("ingress:\n"));
    CHECK_THAT(ingress, Contains("- namespaceSelector: {}\n") && !Contains("cidr"));
    const std::string outside =
        exported(kind, {}, {"serving.clients=[10.20.0.0/16, '2001:db8::/32']"});
    CHECK_THAT(outside, Contains("type: LoadBalancer\n") &&
                            Contains("externalTrafficPolicy: Local\n") &&
                            Contains("loadBalancerSourceRanges:\n    - \"10.20.0.0/16\"\n"));
    CHECK_THAT(outside,
               Contains("cidr: \"10.20.0.0/16\"\n") && Contains("cidr: \"2001:db8::/32\"\n"));
  }
}

TEST_CASE("a client that is no network is refused where it stands") {
  for (const char* none : {"10.0.0.0", "10.0.0.0/33", "example.com/8", "::/129", "10.0.0.0/-1"}) {
    const auto file =
        parse_scenario(kService, "s.yaml", std::vector<std::string>{clients_override(none)});
    REQUIRE_FALSE(file);
    CHECK_THAT(format(file.error()), Contains("is no network"));
  }
}
