#include <fmt/format.h>

#include "exchange/infrastructure/writers.h"

// Node pools of an AKS cluster in Terraform's JSON syntax. Names of arguments:
// hashicorp/terraform-provider-azurerm 4 (006f87e316b3f5bfa59fbd4e2b9ef6fdbb3211e2),
// website/docs/r/kubernetes_cluster_node_pool.html.markdown, proximity_placement_group. AKS
// installs the drivers of GPUs by itself.
namespace reckon::infrastructure {
namespace {

Json aks_pool(const CloudCluster& cluster, const CloudPool& p) {
  const PlannedPool& pool = *p.pool;
  Json out = {{"name", pool.name},
              {"kubernetes_cluster_id", "${var.cluster_id}"},
              {"vm_size", pool.machine.name},
              {"mode", "User"},
              {"auto_scaling_enabled", pool.autoscaling},
              {"node_count", p.initial}};
  if (pool.autoscaling) {
    out["min_count"] = p.min;
    out["max_count"] = p.max;
    out["lifecycle"] = {{"ignore_changes", Json::array({"node_count"})}};
  }
  if (p.spot) {
    out["priority"] = "Spot";
    out["eviction_policy"] = "Delete";
    out["spot_max_price"] = -1;  // the on-demand price
  }
  if (!p.labels.empty()) out["node_labels"] = labels_of(p);
  if (!p.taints.empty()) {
    out["node_taints"] = Json::array();
    for (const NodeTaint& taint : p.taints) out["node_taints"].push_back(to_text(taint));
  }
  if (const std::string zone = azure_zone(*cluster.plan); !zone.empty())
    out["zones"] = Json::array({zone});
  if (p.compact)
    out["proximity_placement_group_id"] =
        fmt::format("${{azurerm_proximity_placement_group.{}.id}}", resource_name(pool));
  if (p.reserved != Reserved::none)
    out["capacity_reservation_group_id"] = fmt::format("${{var.reservation_{}}}", pool.name);
  return out;
}

}  // namespace

InfrastructureText terraform_aks(const CloudCluster& cluster, Refusals& refused) {
  const Plan& plan = *cluster.plan;
  refuse_azure_names(cluster, refused);
  Json variables = {{"cluster_id", variable("string", "id of the AKS cluster")},
                    {"resource_group_name", variable("string", "resource group of the cluster")}};
  Json pools = Json::object(), placements = Json::object();
  for (const CloudPool& p : cluster.pools) {
    const std::string resource = resource_name(*p.pool);
    if (p.compact)
      placements[resource] = {{"name", fmt::format("{}-{}", cluster.name, p.pool->name)},
                              {"location", plan.region},
                              {"resource_group_name", "${var.resource_group_name}"}};
    if (p.reserved != Reserved::none)
      variables["reservation_" + p.pool->name] = variable(
          "string", fmt::format("id of the capacity reservation group for pool {}", p.pool->name));
    pools[resource] = aks_pool(cluster, p);
  }
  Json resources = Json::object();
  if (!placements.empty()) resources["azurerm_proximity_placement_group"] = std::move(placements);
  resources["azurerm_kubernetes_cluster_node_pool"] = std::move(pools);
  if (cluster.bucket) {
    variables["storage_account_id"] = variable("string", "storage account for checkpoints");
    resources["azurerm_storage_container"] = {
        {"checkpoints",
         {{"name", cluster.name + "-checkpoints"},
          {"storage_account_id", "${var.storage_account_id}"}}}};
  }
  const Json file = {{"terraform",
                      {{"required_providers",
                        {{"azurerm", {{"source", "hashicorp/azurerm"}, {"version", ">= 4.9"}}}}}}},
                     {"provider", {{"azurerm", {{"features", Json::object()}}}}},
                     {"variable", variables},
                     {"resource", resources}};
  InfrastructureText out{.text = file.dump(2) + '\n', .left_to_user = {}};
  out.left_to_user.emplace_back(
      "the cluster's network policy: network_profile {network_policy} of the AKS cluster");
  return out;
}

}  // namespace reckon::infrastructure
