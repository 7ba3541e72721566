#include <fmt/format.h>

#include <algorithm>

#include "exchange/infrastructure/writers.h"
#include "exchange/yaml_text.h"

// A ClusterConfig of eksctl. Names and types: eksctl-io/eksctl v0.230.0
// (6ee3b761771c4ae78c76c82bbf2ea168afd61a9e), pkg/apis/eksctl.io/v1alpha5/assets/schema.json.
namespace reckon::infrastructure {
namespace {

Json eksctl_group(const CloudCluster& cluster, const CloudPool& p, Refusals& refused) {
  const PlannedPool& pool = *p.pool;
  Json out = {{"name", pool.name},
              {"amiFamily", "AmazonLinux2023"},  // with the driver where the machine has GPUs
              {"instanceType", pool.machine.name},
              {"desiredCapacity", p.initial},
              {"minSize", pool.autoscaling ? p.min : p.initial},
              {"maxSize", std::max(1, pool.autoscaling ? p.max : p.initial)},
              {"spot", p.spot}};
  if (!cluster.plan->zone.empty()) out["availabilityZones"] = Json::array({cluster.plan->zone});
  out["privateNetworking"] = true;
  if (!p.labels.empty()) {
    out["labels"] = Json::object();
    for (const auto& [key, value] : p.labels) out["labels"][key] = value;
  }
  if (!p.taints.empty()) {
    out["taints"] = Json::array();
    for (const NodeTaint& taint : p.taints)
      out["taints"].push_back(
          {{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  }
  const bool efa = p.compact && pool.machine.network_link.starts_with("efa");
  // With EFA eksctl makes a placement group by itself.
  if (efa) out["efaEnabled"] = true;
  if (p.compact && !efa)
    out["placement"] = {{"groupName", fmt::format("{}-{}", cluster.name, pool.name)}};
  if (p.reserved == Reserved::part)
    out["capacityReservation"] = {{"capacityReservationPreference", "open"}};
  if (p.reserved == Reserved::whole)
    refused.add("cluster.pools." + pool.name, "a reservation of the whole pool, whose id it needs",
                "reckon export terraform, or reserve a part");
  if (pool.autoscaling) {
    out["iam"] = {{"withAddonPolicies", {{"autoScaler", true}}}};
    out["propagateASGTags"] = true;  // so that a pool of no nodes can grow
  }
  return out;
}

}  // namespace

InfrastructureText eksctl(const CloudCluster& cluster, Refusals& refused) {
  Json groups = Json::array();
  InfrastructureText out;
  for (const CloudPool& p : cluster.pools) {
    groups.push_back(eksctl_group(cluster, p, refused));
    if (groups.back().contains("placement"))
      out.left_to_user.push_back(fmt::format(
          "a placement group: aws ec2 create-placement-group --strategy cluster --group-name {}",
          groups.back()["placement"]["groupName"].get<std::string>()));
    if (p.pool->autoscaling)
      out.left_to_user.push_back(
          fmt::format("the cluster-autoscaler, which scales pool {}", p.pool->name));
  }
  const Json file = {
      {"apiVersion", "eksctl.io/v1alpha5"},
      {"kind", "ClusterConfig"},
      {"metadata", {{"name", cluster.name}, {"region", cluster.plan->region}}},
      {"iam", {{"withOIDC", true}}},
      // enforces the NetworkPolicy of the job's manifests
      {"addons",
       Json::array({{{"name", "vpc-cni"},
                     {"configurationValues", Json{{"enableNetworkPolicy", "true"}}.dump()}}})},
      {"managedNodeGroups", groups}};
  out.text = yaml_text(file);
  note_bucket(out, cluster, "aws s3 mb s3://NAME");
  return out;
}

}  // namespace reckon::infrastructure
