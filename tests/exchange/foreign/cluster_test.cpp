#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "exchange/foreign/cluster/nodes.h"
#include "exchange/foreign/cluster/view.h"
#include "exchange/foreign/resnet_work.h"
#include "support/scenario_text.h"

// `reckon import cluster`: what kubectl says of a cluster, as a scenario.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

Json node(const std::string& name, const Json& labels, int gpus, const std::string& provider_id) {
  Json resources = {{"cpu", "96"}, {"memory", "1000Gi"}, {"pods", "110"}};
  if (gpus > 0) resources["nvidia.com/gpu"] = std::to_string(gpus);
  return {{"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", labels}}},
          {"spec", {{"providerID", provider_id}}},
          {"status",
           {{"capacity", resources},
            {"allocatable", resources},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}
Json gke_node(int number) {
  return node("gke-c-p100-4e9f-" + std::string(1, char('a' + number)),
              {{"node.kubernetes.io/instance-type", "n1-standard-16"},
               {"topology.kubernetes.io/region", "us-central1"},
               {"topology.kubernetes.io/zone", "us-central1-c"},
               {"cloud.google.com/gke-nodepool", "p100"},
               {"cloud.google.com/gke-accelerator", "nvidia-tesla-p100"},
               {"cloud.google.com/gke-spot", "true"}},
              2, "gce://project/us-central1-c/x");
}
Json pod(const std::string& space, const std::string& where, const std::string& phase, int gpus) {
  return {{"kind", "Pod"},
          {"metadata", {{"name", "p"}, {"namespace", space}}},
          {"spec",
           {{"nodeName", where},
            {"containers",
             {{{"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}}},
          {"status", {{"phase", phase}}}};
}
Json status(const std::string& text) {
  return {{"kind", "ConfigMap"},
          {"metadata", {{"name", "cluster-autoscaler-status"}}},
          {"data", {{"status", text}}}};
}
Json quota(const std::string& space, const std::string& hard, const std::string& used) {
  return {{"kind", "ResourceQuota"},
          {"metadata", {{"name", "gpus"}, {"namespace", space}}},
          {"status",
           {{"hard", {{"requests.nvidia.com/gpu", hard}}},
            {"used", {{"requests.nvidia.com/gpu", used}}}}}};
}

/// The scenario, or the errors.
std::string imported_cluster(const Json& items, const ClusterChoice& choice = {}) {
  const Json list = {{"kind", "List"}, {"items", items}};
  const auto cluster = import_cluster(list.dump(), "now.json", choice, shipped_catalog());
  if (!cluster) return format(cluster.error());
  const auto text = scenario_of(*cluster, kResNet50, shipped_catalog());
  return text ? *text : format(text.error());
}

const std::string kGroup =
    "Cluster-autoscaler status at 2026-11-22 10:00:00 UTC:\n"
    "Cluster-wide:\n"
    "  Health:      Healthy (ready=4 unready=0 registered=4)\n"
    "NodeGroups:\n"
    "  Name:        https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-c/"
    "instanceGroups/gke-c-p100-4e9f-grp\n"
    "  Health:      Healthy (ready=3 unready=0 registered=3 longUnregistered=0 "
    "cloudProviderTarget=3 (minSize=1, maxSize=5))\n"
    "  ScaleUp:     Backoff (ready=3 cloudProviderTarget=3)\n"
    "  Name:        other/gke-c-a100-0000-grp\n"
    "  Health:      Healthy (ready=0 cloudProviderTarget=0 (minSize=0, maxSize=2))\n";

}  // namespace

TEST_CASE("a cluster of GKE as it is now: its pool, the autoscaler's bounds, spot prices") {
  const std::string text = imported_cluster(
      {gke_node(0), gke_node(1), gke_node(2),
       node("system", {{"node.kubernetes.io/instance-type", "e2-standard-2"}}, 0, "gce://"),
       status(kGroup)});
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("name: p100\n") && Contains("machine: n1-standard-16\n") &&
                       Contains("accelerator: {type: P100-PCIE-16, count: 2}") &&
                       Contains("nodes: {initial: 3, min: 1, max: 5}") &&
                       Contains("autoscaling: true") && Contains("pricing: spot") &&
                       Contains("region: us-central1\n") && Contains("zone: us-central1-c\n"));
  CHECK_THAT(text, Contains("did not come when the autoscaler asked for them") &&
                       Contains("node group gke-c-a100-0000-grp: up to 2 nodes") &&
                       Contains("pool e2-standard-2 (1 nodes of e2-standard-2)"));
}

TEST_CASE("nodes that are in use, away or cordoned are not counted, and what waits is said") {
  Json away = gke_node(2), cordoned = gke_node(3);
  away["status"]["conditions"][0]["status"] = "Unknown";
  cordoned["spec"]["unschedulable"] = true;
  const std::string text = imported_cluster(
      {gke_node(0), gke_node(1), away, cordoned, pod("team", "gke-c-p100-4e9f-a", "Running", 2),
       pod("team", "gke-c-p100-4e9f-b", "Succeeded", 2), pod("team", "", "Pending", 2),
       pod("other", "", "Pending", 1)});
  INFO(text);
  CHECK_THAT(text, Contains("nodes: 1\n") &&
                       Contains("2 of 4 nodes are not ready or cordoned, and not counted") &&
                       Contains("the accelerators of 1 of 2 nodes are in use") &&
                       Contains("2 pods of other, team wait for nodes, and ask for 3 "
                                "nvidia.com/gpu"));
}

TEST_CASE("a quota bounds the job of its namespace, and is named to others") {
  const Json nodes = {gke_node(0), gke_node(1), gke_node(2), quota("team", "8", "4")};
  CHECK_THAT(imported_cluster(nodes),
             Contains("nodes: 3\n") && Contains("quota gpus of namespace team leaves 4 of "
                                                "nvidia.com/gpu; --namespace team obeys it"));
  ClusterChoice choice;
  choice.name_space = "team";
  CHECK_THAT(imported_cluster(nodes, choice), Contains("nodes: 2\n") && Contains("2 of 3 nodes"));
  CHECK_THAT(imported_cluster({gke_node(0), quota("team", "8", "7")}, choice),
             Contains("less than a node has"));
}

TEST_CASE("machines that the catalog does not know are described by what their nodes have") {
  const Json labels = {{"kubernetes.io/hostname", "dgx-1"},
                       {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}};
  const std::string text =
      imported_cluster({node("dgx-1", labels, 8, ""), node("dgx-2", labels, 8, "")});
  INFO(text);
  CHECK(errors_of(text) == "");
  CHECK_THAT(text, Contains("provider: on_premises") &&
                       Contains("machine: {vcpu: 96, memory: 1000GiB, network: 10Gbps}") &&
                       Contains("accelerator: {type: A100-SXM4-80, count: 8}") &&
                       Contains("a network of 10Gbps (assumed; no node says)"));
  const Json unknown = {{"nvidia.com/gpu.product", "NVIDIA-Z999"}};
  CHECK_THAT(imported_cluster(Json::array({node("a", unknown, 8, "")})),
             Contains("the accelerator 'NVIDIA-Z999' of pool nodes is not in the catalog"));
  CHECK_THAT(imported_cluster(Json::array({node("a", Json::object(), 8, "")})),
             Contains("no label says what it is") && Contains("--accelerator"));
  ClusterChoice choice;
  choice.hints.accelerator = "H100-SXM5-80";
  CHECK_THAT(imported_cluster(Json::array({node("a", Json::object(), 8, "")}), choice),
             Contains("H100-SXM5-80"));
}

TEST_CASE("NVIDIA's names of products are accelerators of the catalog") {
  const auto name = [](const char* product) {
    const Accelerator* found = accelerator_of_product(product, shipped_catalog());
    return found != nullptr ? found->name : "none";
  };
  CHECK(name("NVIDIA-A100-SXM4-80GB") == "A100-SXM4-80");
  CHECK(name("NVIDIA-A100-SXM4-40GB") == "A100-SXM4-40");
  CHECK(name("NVIDIA-H100-80GB-HBM3") == "H100-SXM5-80");
  CHECK(name("Tesla-P100-PCIE-16GB") == "P100-PCIE-16");
  CHECK(name("Tesla-V100-SXM2-16GB") == "V100-SXM2-16");
  CHECK(name("Quadro-RTX-0") == "none");
}

TEST_CASE("the autoscaler's status is read in both of its forms") {
  const auto groups = scaled_groups(
      "time: 2026-11-22 10:00:00\nautoscalerStatus: Running\n"
      "clusterWide:\n  health: {status: Healthy}\n"
      "nodeGroups:\n- name: eks-workers-1a2b\n  health:\n    status: Healthy\n"
      "    cloudProviderTarget: 2\n    minSize: 1\n    maxSize: 9\n"
      "  scaleUp:\n    status: NoActivity\n");
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].target == 2);
  CHECK(groups[0].min == 1);
  CHECK(groups[0].max == 9);
  SeenNode seen;
  seen.pool = "workers";
  CHECK(fit_of(groups[0], seen) == 7);
  seen.pool = "work";
  CHECK(fit_of(groups[0], seen) == 0);
}

namespace {

Json with_taint(Json node, const char* key, const char* effect) {
  node["spec"]["taints"].push_back({{"key", key}, {"value", "x"}, {"effect", effect}});
  return node;
}
Json eks_node(const std::string& name, const std::string& pool,
              const std::string& machine = "g4dn.xlarge") {
  return node(name,
              {{"eks.amazonaws.com/nodegroup", pool},
               {"kubernetes.io/hostname", name},
               {"node.kubernetes.io/instance-type", machine},
               {"topology.kubernetes.io/region", "us-east-1"}},
              1, "aws://");
}

}  // namespace

TEST_CASE("nodes whose taints keep the job's pods away are not counted, and how many is said") {
  const Json labels = {{"kubernetes.io/hostname", "n"}};
  const std::string control = "node-role.kubernetes.io/control-plane";
  const std::string text = imported_cluster(
      {with_taint(node("control", labels, 0, ""), control.c_str(), "NoSchedule"),
       with_taint(node("team", labels, 0, ""), "dedicated", "NoExecute"), node("a", labels, 0, ""),
       with_taint(node("b", labels, 0, ""), "busy", "PreferNoSchedule")});
  INFO(text);
  CHECK_THAT(text, Contains("nodes: 2\n") &&
                       Contains("1 nodes that pods keep away from: taint " + control) &&
                       Contains("taint dedicated"));
  CHECK_THAT(
      imported_cluster(Json::array({with_taint(gke_node(0), control.c_str(), "NoSchedule")})),
      Contains("all of its nodes have taints"));
}

TEST_CASE("taints that exported pods tolerate, and those of the moment, keep no node out") {
  Json cordoned = with_taint(gke_node(2), "node.kubernetes.io/unschedulable", "NoSchedule");
  cordoned["spec"]["unschedulable"] = true;
  const std::string text = imported_cluster(
      {with_taint(gke_node(0), "nvidia.com/gpu", "NoSchedule"),
       with_taint(gke_node(1), "cloud.google.com/gke-spot", "NoSchedule"), cordoned});
  INFO(text);
  CHECK_THAT(text, Contains("nodes: 2\n") && Contains("1 of 3 nodes are not ready or cordoned") &&
                       !Contains("keep away"));
}

TEST_CASE("nodes of one pool that differ in machine, accelerators or price are not one pool") {
  Json other = gke_node(2);
  other["metadata"]["labels"].erase("cloud.google.com/gke-spot");
  const std::string text = imported_cluster({gke_node(0), gke_node(1), other});
  INFO(text);
  CHECK_THAT(text, Contains("nodes: 2\n") && Contains("pricing: spot") &&
                       Contains("pool p100-1 (1 nodes of n1-standard-16)"));
}

TEST_CASE("a group of nodes is that of the pool whose whole name it holds") {
  const std::string groups =
      "autoscalerStatus: Running\nnodeGroups:\n- name: eks-gpu-big-1a2b\n  health:\n"
      "    minSize: 0\n    maxSize: 9\n";
  ClusterChoice choice;
  choice.pool = "gpu-big";
  const std::string text =
      imported_cluster({eks_node("a", "gpu"), eks_node("b", "gpu-big"), status(groups)}, choice);
  INFO(text);
  CHECK_THAT(text, Contains("name: gpu-big\n") && Contains("max: 9"));
}

TEST_CASE("pools of machines that the catalog does not know have as many nodes as now") {
  const std::string groups =
      "autoscalerStatus: Running\nnodeGroups:\n- name: eks-gpu-1a2b\n  health:\n"
      "    minSize: 0\n    maxSize: 9\n";
  ClusterChoice choice;
  choice.hints.accelerator = "T4";
  const std::string text =
      imported_cluster({eks_node("a", "gpu", "z9.huge"), status(groups)}, choice);
  INFO(text);
  CHECK_THAT(text, Contains("nodes: 1\n") && Contains("as many nodes as now, not 0 to 9"));
}

TEST_CASE("files that are no cluster, and pools that are not there") {
  CHECK_THAT(imported_cluster(Json::array()), Contains("no nodes are in it"));
  const auto none = import_cluster("nodes", "now.json", {}, shipped_catalog());
  REQUIRE(!none);
  CHECK_THAT(format(none.error()), Contains("no list of objects in JSON"));
  ClusterChoice choice;
  choice.pool = "p10";
  CHECK_THAT(imported_cluster(Json::array({gke_node(0)}), choice),
             Contains("no pool is named p10; did you mean 'p100'"));
}
