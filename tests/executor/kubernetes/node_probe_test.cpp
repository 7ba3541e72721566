#include "executor/kubernetes/pods/node_probe.h"

#include <catch2/catch.hpp>

#include "executor/kubernetes/fake_kubectl.h"
#include "executor/kubernetes/pods/node_fit.h"

using namespace reckon;
using namespace reckon::kubernetes;
using reckon::test::FakeKubectl;

namespace {

NodeProbeOptions options() {
  return {.name = "ring-probe",
          .worker = R"({"kind": "Job", "spec": {"template": {"spec": {
              "hostname": "ring-0-worker-0", "subdomain": "ring-0", "serviceAccountName": "ring",
              "nodeSelector": {"a": "b"}, "tolerations": [{"key": "gpu"}],
              "containers": [{"name": "main", "command": ["reckon-worker"], "args": ["x"],
                              "env": [{"name": "RANK", "value": "0"}],
                              "resources": {"limits": {"nvidia.com/gpu": 8}},
                              "volumeMounts": [{"name": "plan", "mountPath": "/plan"},
                                               {"name": "secret", "mountPath": "/secret"}]}],
              "volumes": [{"name": "plan", "configMap": {"name": "ring-0-plan"}},
                          {"name": "checkpoints",
                           "persistentVolumeClaim": {"claimName": "none"}},
                          {"name": "secret", "secret": {"secretName": "ring-secret"}}]}}}})",
          .plan = "name: ring\n",
          .arguments = {"--alone", "--steps", "5"},
          .nodes = {"a", "b"}};
}

}  // namespace

TEST_CASE("the pod of a probe is a worker by itself, on its node, with a volume of its own") {
  const Json job = probe_job(options(), 1);
  const Json pod = job.at("spec").at("template").at("spec");
  CHECK(!pod.contains("nodeSelector"));
  const Json term = pod.at(Json::json_pointer(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"));
  CHECK(term == Json::parse(R"({"matchFields": [{"key": "metadata.name", "operator": "In",
                                                 "values": ["b"]}]})"));
  CHECK(!pod.contains("subdomain"));
  CHECK(!pod.contains("serviceAccountName"));
  CHECK(pod.at("tolerations").size() == 1);
  const Json& container = pod.at("containers").at(0);
  CHECK(container.at("args") == Json({"/plan/plan.reckon", "--alone", "--steps", "5"}));
  CHECK(container.at("env").empty());
  CHECK(container.at("resources").at("limits").at("nvidia.com/gpu") == 8);
  CHECK(pod.at("volumes").at(0).at("configMap").at("name") == "ring-probe-plan");
  CHECK(pod.at("volumes").at(1).contains("emptyDir"));
  // The run's secret is not there, and a pod would wait for it.
  CHECK(pod.at("volumes").size() == 2);
  CHECK(container.at("volumeMounts").size() == 1);
  const Json meta = job.at("spec").at("template").at("metadata");
  CHECK(meta.at("annotations").at("reckon/first-rank") == "1");
  CHECK(meta.at("labels").at("app.kubernetes.io/instance") == "ring-probe");
}

TEST_CASE("nodes that could hold a pod are named, the others left out") {
  const Json list = Json::parse(R"({"items": [
      {"metadata": {"name": "big"}, "status": {"allocatable": {"cpu": "8", "pods": "10"},
       "conditions": [{"type": "Ready", "status": "True"}]}},
      {"metadata": {"name": "small"}, "status": {"allocatable": {"cpu": "2", "pods": "10"},
       "conditions": [{"type": "Ready", "status": "True"}]}},
      {"metadata": {"name": "away"}, "status": {"allocatable": {"cpu": "8", "pods": "10"},
       "conditions": [{"type": "Ready", "status": "False"}]}}]})");
  CHECK(nodes_for({.requests = {{"cpu", 4}, {"pods", 1}}}, list) ==
        std::vector<std::string>{"big"});
}
