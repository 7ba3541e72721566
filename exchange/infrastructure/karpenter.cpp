#include <fmt/format.h>

#include "exchange/infrastructure/writers.h"
#include "exchange/kubernetes.h"
#include "exchange/yaml_text.h"

// NodePools of Karpenter and their EC2NodeClasses. Fields: aws/karpenter-provider-aws v1.14.1
// (bde00654cd316fddb3dccfba3f5ac07039865429), pkg/apis/crds/karpenter.sh_nodepools.yaml and
// karpenter.k8s.aws_ec2nodeclasses.yaml.
namespace reckon::infrastructure {
namespace {

Json requirement(const char* key, const std::string& value) {
  return {{"key", key}, {"operator", "In"}, {"values", Json::array({value})}};
}

Json discovery(const CloudCluster& cluster) {
  return Json::array({{{"tags", {{"karpenter.sh/discovery", cluster.name}}}}});
}

Json node_class(const CloudCluster& cluster, const CloudPool& p) {
  Json spec = {{"amiSelectorTerms", Json::array({{{"alias", "al2023@latest"}}})},
               {"role", "KarpenterNodeRole-" + cluster.name},
               {"subnetSelectorTerms", discovery(cluster)},
               {"securityGroupSelectorTerms", discovery(cluster)}};
  if (p.compact)
    spec["placementGroupSelector"] = {{"name", fmt::format("{}-{}", cluster.name, p.pool->name)}};
  if (p.reserved != Reserved::none)
    spec["capacityReservationSelectorTerms"] = Json::array({{{"tags", {{"pool", p.pool->name}}}}});
  return {{"apiVersion", "karpenter.k8s.aws/v1"},
          {"kind", "EC2NodeClass"},
          {"metadata", {{"name", kubernetes_name(p.pool->name)}}},
          {"spec", spec}};
}

Json node_pool(const CloudCluster& cluster, const CloudPool& p) {
  const PlannedPool& pool = *p.pool;
  Json requirements =
      Json::array({requirement("node.kubernetes.io/instance-type", pool.machine.name)});
  Json capacity = Json::array();
  if (p.reserved != Reserved::none) capacity.push_back("reserved");
  if (p.reserved != Reserved::whole) capacity.push_back(p.spot ? "spot" : "on-demand");
  requirements.push_back(
      {{"key", "karpenter.sh/capacity-type"}, {"operator", "In"}, {"values", capacity}});
  if (!cluster.plan->zone.empty())
    requirements.push_back(requirement("topology.kubernetes.io/zone", cluster.plan->zone));
  const std::string name = kubernetes_name(pool.name);
  Json node = {
      {"requirements", requirements},
      {"nodeClassRef", {{"group", "karpenter.k8s.aws"}, {"kind", "EC2NodeClass"}, {"name", name}}},
      {"expireAfter", "Never"}};  // a job's node is not replaced for its age
  if (!p.taints.empty()) {
    node["taints"] = Json::array();
    for (const NodeTaint& taint : p.taints) {
      Json one = {{"key", taint.key}};
      if (!taint.value.empty()) one["value"] = taint.value;
      one["effect"] = taint.effect;
      node["taints"].push_back(std::move(one));
    }
  }
  Json labels = Json::object();
  for (const auto* some : {&p.service_labels, &p.labels})
    for (const auto& [key, value] : *some) labels[key] = value;
  Json spec = {{"template", {{"metadata", {{"labels", labels}}}, {"spec", node}}}};
  if (pool.autoscaling) {
    spec["disruption"] = {{"consolidationPolicy", "WhenEmpty"}, {"consolidateAfter", "10m"}};
    spec["limits"] = {{"cpu", std::int64_t{p.max} * pool.machine.vcpus}};
  } else {
    spec["replicas"] = p.initial;
    spec["limits"] = {{"nodes", p.initial}};
  }
  return {{"apiVersion", "karpenter.sh/v1"},
          {"kind", "NodePool"},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

}  // namespace

InfrastructureText karpenter(const CloudCluster& cluster, Refusals& refused) {
  InfrastructureText out;
  bool fixed = false;
  for (const CloudPool& p : cluster.pools) {
    const PlannedPool& pool = *p.pool;
    if (pool.autoscaling && p.min > 0)
      refused.add("cluster.pools." + pool.name + ".nodes",
                  fmt::format("{} nodes that stay without pods", p.min),
                  "nodes: {min: 0, ...}, or a pool that is not autoscaled");
    if (pool.autoscaling && pool.stands_in_for)
      out.left_to_user.push_back(
          fmt::format("pool {} is a fallback: spec.weight orders NodePools", pool.name));
    fixed = fixed || !pool.autoscaling;
    if (p.compact)
      out.left_to_user.push_back(fmt::format(
          "a placement group: aws ec2 create-placement-group --strategy cluster --group-name {}-{}",
          cluster.name, pool.name));
    if (p.reserved != Reserved::none)
      out.left_to_user.push_back(
          fmt::format("the tag pool={} of the capacity reservation", pool.name));
    out.text +=
        "---\n" + yaml_text(node_class(cluster, p)) + "---\n" + yaml_text(node_pool(cluster, p));
  }
  if (fixed)
    out.left_to_user.emplace_back(
        "Karpenter's feature gate StaticCapacity, for pools that are not autoscaled");
  note_bucket(out, cluster, "aws s3 mb s3://NAME");
  return out;
}

}  // namespace reckon::infrastructure
