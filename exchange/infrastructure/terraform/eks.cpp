#include <fmt/format.h>

#include <algorithm>

#include "exchange/infrastructure/writers.h"

// Managed node groups of an EKS cluster in Terraform's JSON syntax. Names of arguments:
// hashicorp/terraform-provider-aws (05389d465b6e1e0668493790eae67abd82d1195a),
// website/docs/r/eks_node_group.html.markdown, launch_template, placement_group, eks_addon.
namespace reckon::infrastructure {
namespace {

Json eks_taints(const CloudPool& p) {
  Json list = Json::array();
  for (const NodeTaint& taint : p.taints) {
    const char* effect = taint.effect == "NoExecute"          ? "NO_EXECUTE"
                         : taint.effect == "PreferNoSchedule" ? "PREFER_NO_SCHEDULE"
                                                              : "NO_SCHEDULE";
    Json one = {{"key", taint.key}};
    if (!taint.value.empty()) one["value"] = taint.value;
    one["effect"] = effect;
    list.push_back(std::move(one));
  }
  return list;
}

const char* ami_of(const CloudPool& p) {
  if (p.gpu) return "AL2023_x86_64_NVIDIA";
  return p.pool->accelerator ? "AL2023_x86_64_NEURON" : "AL2023_x86_64_STANDARD";
}

bool needs_template(const CloudPool& p) { return p.compact || p.reserved != Reserved::none; }

Json launch_template(const CloudCluster& cluster, const CloudPool& p) {
  const std::string name = resource_name(*p.pool);
  Json out = {{"name_prefix", fmt::format("{}-{}-", cluster.name, p.pool->name)}};
  if (p.compact)
    out["placement"] = {{"group_name", fmt::format("${{aws_placement_group.{}.name}}", name)}};
  if (p.reserved == Reserved::part)
    out["capacity_reservation_specification"] = {{"capacity_reservation_preference", "open"}};
  if (p.reserved == Reserved::whole)
    out["capacity_reservation_specification"] = {
        {"capacity_reservation_target",
         {{"capacity_reservation_id", fmt::format("${{var.reservation_{}}}", p.pool->name)}}}};
  return out;
}

Json node_group(const CloudPool& p) {
  const PlannedPool& pool = *p.pool;
  const std::string name = resource_name(pool);
  Json out = {{"cluster_name", "${var.cluster_name}"},
              {"node_group_name", pool.name},
              {"node_role_arn", "${var.node_role_arn}"},
              {"subnet_ids", "${var.subnet_ids}"},
              {"ami_type", ami_of(p)},
              {"capacity_type", p.spot ? "SPOT" : "ON_DEMAND"},
              {"instance_types", Json::array({pool.machine.name})},
              {"scaling_config",
               {{"desired_size", p.initial},
                {"min_size", pool.autoscaling ? p.min : p.initial},
                {"max_size", std::max(1, pool.autoscaling ? p.max : p.initial)}}}};
  if (!p.labels.empty()) out["labels"] = labels_of(p);
  if (!p.taints.empty()) out["taint"] = eks_taints(p);
  if (needs_template(p))
    out["launch_template"] = {
        {"id", fmt::format("${{aws_launch_template.{}.id}}", name)},
        {"version", fmt::format("${{aws_launch_template.{}.latest_version}}", name)}};
  if (pool.autoscaling)
    out["lifecycle"] = {{"ignore_changes", Json::array({"scaling_config[0].desired_size"})}};
  return out;
}

void note_eks(InfrastructureText& out, const CloudCluster& cluster) {
  const Plan& plan = *cluster.plan;
  if (!plan.zone.empty())
    out.left_to_user.push_back(fmt::format("subnet_ids of {}, where the plan is", plan.zone));
  for (const CloudPool& p : cluster.pools) {
    if (p.compact && p.pool->machine.network_link.starts_with("efa"))
      out.left_to_user.push_back(fmt::format(
          "EFA interfaces of {} in the launch template of pool {} (reckon export eksctl sets them)",
          p.pool->machine.name, p.pool->name));
    if (p.pool->autoscaling)
      out.left_to_user.push_back(
          fmt::format("the cluster-autoscaler, which scales pool {}", p.pool->name));
  }
}

}  // namespace

InfrastructureText terraform_eks(const CloudCluster& cluster, Refusals& /*refused*/) {
  const Plan& plan = *cluster.plan;
  Json name = variable("string", "name of the EKS cluster");
  name["default"] = cluster.name;
  Json variables = {{"cluster_name", std::move(name)},
                    {"node_role_arn", variable("string", "IAM role of the nodes")},
                    {"subnet_ids", variable("list(string)", "subnets of the nodes")}};
  Json groups = Json::object(), templates = Json::object(), placements = Json::object();
  for (const CloudPool& p : cluster.pools) {
    const std::string resource = resource_name(*p.pool);
    if (p.compact)
      placements[resource] = {{"name", fmt::format("{}-{}", cluster.name, p.pool->name)},
                              {"strategy", "cluster"}};
    if (needs_template(p)) templates[resource] = launch_template(cluster, p);
    if (p.reserved == Reserved::whole)
      variables["reservation_" + p.pool->name] = variable(
          "string", fmt::format("id of the capacity reservation for pool {}", p.pool->name));
    groups[resource] = node_group(p);
  }
  Json resources = Json::object();
  if (!placements.empty()) resources["aws_placement_group"] = std::move(placements);
  if (!templates.empty()) resources["aws_launch_template"] = std::move(templates);
  resources["aws_eks_node_group"] = std::move(groups);
  // enforces the NetworkPolicy of the job's manifests
  resources["aws_eks_addon"] = {
      {"vpc_cni",
       {{"cluster_name", "${var.cluster_name}"},
        {"addon_name", "vpc-cni"},
        {"configuration_values", Json{{"enableNetworkPolicy", "true"}}.dump()}}}};
  if (cluster.bucket) {
    variables["checkpoint_bucket"] = variable("string", "name of the bucket for checkpoints");
    resources["aws_s3_bucket"] = {{"checkpoints", {{"bucket", "${var.checkpoint_bucket}"}}}};
  }
  const Json file = {
      {"terraform",
       {{"required_providers", {{"aws", {{"source", "hashicorp/aws"}, {"version", ">= 5.60"}}}}}}},
      {"provider", {{"aws", {{"region", plan.region}}}}},
      {"variable", variables},
      {"resource", resources}};
  InfrastructureText out{.text = file.dump(2) + '\n', .left_to_user = {}};
  note_eks(out, cluster);
  return out;
}

}  // namespace reckon::infrastructure
