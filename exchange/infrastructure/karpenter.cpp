#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/infrastructure/writers.h"
#include "exchange/kubernetes/kubernetes.h"
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

std::string duration_text(Seconds time) {
  const auto seconds = std::llround(time.count());
  if (seconds % 3600 == 0 && seconds > 0) return fmt::format("{}h", seconds / 3600);
  if (seconds % 60 == 0 && seconds > 0) return fmt::format("{}m", seconds / 60);
  return fmt::format("{}s", seconds);
}

std::string lasting_text(const std::optional<Seconds>& time) {
  return time ? duration_text(*time) : "Never";
}

Json budgets_of(const NodePoolSpec& spec) {
  Json list = Json::array();
  for (const DisruptionBudget& budget : spec.budgets) {
    Json one = {{"nodes", budget.share ? fmt::format("{:.0f}%", *budget.share * 100)
                                       : std::to_string(budget.nodes)}};
    if (!budget.schedule.empty()) {
      one["schedule"] = budget.schedule;
      one["duration"] = duration_text(budget.duration);
    }
    for (const DisruptionReason reason : budget.reasons) one["reasons"].push_back(to_text(reason));
    list.push_back(std::move(one));
  }
  return list;
}

Json limits_of(const NodePoolLimits& limits) {
  Json out = Json::object();
  if (limits.cpu) out["cpu"] = *limits.cpu;
  if (limits.memory) out["memory"] = fmt::format("{:.0f}Mi", limits.memory->v / 1048576);
  if (limits.nodes) out["nodes"] = *limits.nodes;
  if (limits.gpus) out["nvidia.com/gpu"] = *limits.gpus;
  return out;
}

/// A NodePool as the scenario has it.
Json own_node_pool(const CloudCluster& cluster, const NodePoolSpec& spec, const CloudPool& serves) {
  Json node = node_pool(cluster, serves)["spec"]["template"]["spec"];  // its class and taints
  node["requirements"] = Json::array();
  for (const NodeRequirement& r : spec.requirements) {
    Json one = {{"key", r.key}, {"operator", to_text(r.op)}};
    if (!r.values.empty()) one["values"] = r.values;
    if (r.min_values) one["minValues"] = *r.min_values;
    node["requirements"].push_back(std::move(one));
  }
  const std::string name = kubernetes_name(spec.name);
  node["nodeClassRef"]["name"] = name;
  node["expireAfter"] = lasting_text(spec.expire_after);
  if (spec.termination_grace_period)
    node["terminationGracePeriod"] = duration_text(*spec.termination_grace_period);
  Json out = {{"template", {{"spec", node}}}};
  Json& disruption = out["disruption"];
  disruption["consolidationPolicy"] = to_text(spec.consolidation_policy);
  disruption["consolidateAfter"] = lasting_text(spec.consolidate_after);
  if (!spec.budgets.empty()) disruption["budgets"] = budgets_of(spec);
  if (Json limits = limits_of(spec.limits); !limits.empty()) out["limits"] = std::move(limits);
  if (spec.weight > 0) out["weight"] = spec.weight;
  return {{"apiVersion", "karpenter.sh/v1"},
          {"kind", "NodePool"},
          {"metadata", {{"name", name}}},
          {"spec", out}};
}

/// The NodePools that a scenario gives Karpenter, each with a class of its own.
void add_own_node_pools(InfrastructureText& out, const CloudCluster& cluster) {
  const KarpenterSpec& karpenter = *cluster.plan->karpenter;
  for (std::size_t k = 0; k < karpenter.node_pools.size(); ++k) {
    const auto serves = std::ranges::find_if(
        cluster.pools, [&](const CloudPool& p) { return p.pool->node_pool == k; });
    if (serves == cluster.pools.end()) {
      out.left_to_user.push_back(fmt::format(
          "NodePool {} is left out: it serves no pod of the plan", karpenter.node_pools[k].name));
      continue;
    }
    Json made = node_class(cluster, *serves);
    made["metadata"]["name"] = kubernetes_name(karpenter.node_pools[k].name);
    made["spec"].erase("placementGroupSelector");  // its nodes are of several types
    out.text += "---\n" + yaml_text(made) + "---\n" +
                yaml_text(own_node_pool(cluster, karpenter.node_pools[k], *serves));
  }
  out.left_to_user.push_back(
      fmt::format("settings of Karpenter: BATCH_IDLE_DURATION={}, BATCH_MAX_DURATION={}",
                  duration_text(karpenter.batch_idle), duration_text(karpenter.batch_max)));
  if (karpenter.spot_to_spot_consolidation)
    out.left_to_user.emplace_back("Karpenter's feature gate SpotToSpotConsolidation");
  if (karpenter.interruption_queue)
    out.left_to_user.emplace_back("an SQS queue of interruptions: INTERRUPTION_QUEUE");
}

}  // namespace

InfrastructureText karpenter(const CloudCluster& cluster, Refusals& refused) {
  InfrastructureText out;
  bool fixed = false;
  if (cluster.plan->karpenter) add_own_node_pools(out, cluster);
  for (const CloudPool& p : cluster.pools) {
    const PlannedPool& pool = *p.pool;
    // Of the scenario's own NodePools, or of the cluster-autoscaler.
    if (pool.node_pool || (cluster.plan->karpenter && pool.fallback_for)) continue;
    if (pool.autoscaling && p.min > 0)
      refused.add("cluster.pools." + pool.name + ".nodes",
                  fmt::format("{} nodes that stay without pods", p.min),
                  "nodes: {min: 0, ...}, or a pool that is not autoscaled");
    if (pool.autoscaling && pool.fallback_for)
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
