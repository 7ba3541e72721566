#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "exchange/gcloud.h"
#include "exchange/infrastructure/writers.h"

// GKE in Terraform's JSON syntax. Names of arguments: hashicorp/terraform-provider-google
// (020ce19e9f33282ad52e85bfa722f6339ee4d569), website/docs/r/container_node_pool.html.markdown and
// container_cluster.html.markdown.
namespace reckon::infrastructure {
namespace {

Json gke_taints(const CloudPool& p) {
  Json list = Json::array();
  for (const NodeTaint& taint : p.taints) {
    const char* effect = taint.effect == "NoExecute"          ? "NO_EXECUTE"
                         : taint.effect == "PreferNoSchedule" ? "PREFER_NO_SCHEDULE"
                                                              : "NO_SCHEDULE";
    list.push_back({{"key", taint.key}, {"value", taint.value}, {"effect", effect}});
  }
  return list;
}

Json gke_reservation(const CloudPool& p) {
  if (p.reserved == Reserved::part) return {{"consume_reservation_type", "ANY_RESERVATION"}};
  return {{"consume_reservation_type", "SPECIFIC_RESERVATION"},
          {"key", "compute.googleapis.com/reservation-name"},
          {"values", Json::array({fmt::format("${{var.reservation_{}}}", p.pool->name)})}};
}

Json gke_node_config(const CloudPool& p) {
  const PlannedPool& pool = *p.pool;
  Json config = {{"machine_type", pool.machine.name}, {"spot", p.spot}};
  if (p.gpu)
    config["guest_accelerator"] = {
        {"type", cloud_name_of(*pool.accelerator)},
        {"count", pool.accelerators_per_node},
        {"gpu_driver_installation_config", {{"gpu_driver_version", "LATEST"}}}};
  if (!p.labels.empty()) config["labels"] = labels_of(p);
  if (!p.taints.empty()) config["taint"] = gke_taints(p);
  if (p.reserved != Reserved::none) config["reservation_affinity"] = gke_reservation(p);
  // As the page "Run a large-scale workload with flex-start with queued provisioning" asks for.
  if (is_flex_start(pool.provisioning_model)) {
    config["flex_start"] = true;
    config["reservation_affinity"] = {{"consume_reservation_type", "NO_RESERVATION"}};
  }
  if (pool.max_run_duration)
    config["max_run_duration"] = fmt::format("{:.0f}s", pool.max_run_duration->count());
  config["oauth_scopes"] = Json::array({"https://www.googleapis.com/auth/cloud-platform"});
  config["workload_metadata_config"] = {{"mode", "GKE_METADATA"}};
  return config;
}

/// Families, C2 to N2D and those of A100, H100 and L4 [GKE, "Define compact placement for GKE
/// nodes"].
bool takes_compact_placement(const CloudPool& p) {
  static constexpr std::array<std::string_view, 12> kFamilies{
      "a2", "a3", "c2", "c2d", "c3", "c3d", "c4d", "g2", "h3", "h4d", "n2", "n2d"};
  const std::string_view machine = p.pool->machine.name;
  return p.compact && !p.pool->slice &&
         std::ranges::find(kFamilies, machine.substr(0, machine.find('-'))) != kFamilies.end();
}

/// In a regional cluster counts are those of each zone but for the total_ ones.
Json gke_pool(const CloudCluster& cluster, const CloudPool& p) {
  const PlannedPool& pool = *p.pool;
  Json out = {{"name", pool.name}, {"cluster", "${google_container_cluster.cluster.id}"}};
  const bool zonal = !cluster.plan->zone.empty();
  if (zonal) out["node_locations"] = Json::array({cluster.plan->zone});
  if (zonal && !pool.autoscaling) {
    out["node_count"] = p.initial;
  } else {
    if (zonal) out["initial_node_count"] = p.initial;
    out["autoscaling"] = {{"total_min_node_count", pool.autoscaling ? p.min : p.initial},
                          {"total_max_node_count", pool.autoscaling ? p.max : p.initial},
                          {"location_policy", "ANY"}};
  }
  if (takes_compact_placement(p)) out["placement_policy"] = {{"type", "COMPACT"}};
  if (pool.slice && pool.slice->hosts > 1)
    out["placement_policy"] = {
        {"type", "COMPACT"},
        {"tpu_topology", fmt::format("{}", fmt::join(pool.slice->torus, "x"))}};
  if (is_flex_start(pool.provisioning_model)) out["management"] = {{"auto_repair", false}};
  if (pool.provisioning_model == ProvisioningModel::flex_start_queued)
    out["queued_provisioning"] = {{"enabled", true}};
  out["node_config"] = gke_node_config(p);
  return out;
}

/// The oldest release of the provider whose google_container_node_pool has what is written:
/// flex_start came with 6.39.0, max_run_duration between 6.13 and 6.25, as the schemas in npm's
/// @cdktf/provider-google 14.0.0 .. 16.12.1 show.
std::string google_provider(const CloudCluster& cluster) {
  const auto any = [&](auto has) {
    return std::ranges::any_of(cluster.pools, [&](const CloudPool& p) { return has(*p.pool); });
  };
  if (any([](const PlannedPool& pool) { return is_flex_start(pool.provisioning_model); }))
    return ">= 6.39";
  if (any([](const PlannedPool& pool) { return pool.max_run_duration.has_value(); }))
    return ">= 6.25";
  return ">= 6.0";
}

Json gke_cluster(const CloudCluster& cluster) {
  const Plan& plan = *cluster.plan;
  Json out = {{"name", cluster.name},
              {"location", plan.zone.empty() ? plan.region : plan.zone},
              // for the cluster's own pods
              {"initial_node_count", 1},
              {"node_config", {{"machine_type", "e2-standard-2"}}},
              // enforces the NetworkPolicy of the job's manifests
              {"datapath_provider", "ADVANCED_DATAPATH"},
              {"workload_identity_config", {{"workload_pool", "${var.project}.svc.id.goog"}}}};
  if (cluster.bucket) out["addons_config"] = {{"gcs_fuse_csi_driver_config", {{"enabled", true}}}};
  return out;
}

}  // namespace

InfrastructureText terraform_gke(const CloudCluster& cluster, Refusals& refused) {
  const Plan& plan = *cluster.plan;
  Json variables = {{"project", variable("string", "project of Google Cloud")}};
  InfrastructureText out;
  Json pools = Json::object();
  for (const CloudPool& p : cluster.pools) {
    const PlannedPool& pool = *p.pool;
    if (p.compact && !pool.slice && !takes_compact_placement(p))
      out.left_to_user.push_back(
          fmt::format("nothing places {} closely: pool {} is spread over the zone",
                      pool.machine.name, pool.name));
    if (pool.slice && (pool.slice->accelerator == "TPU-v2" || pool.slice->accelerator == "TPU-v3"))
      refused.add("cluster.pools." + pool.name,
                  fmt::format("{}, which is no node of a pool", pool.slice->accelerator),
                  "reckon export gcloud, or a newer TPU");
    if (p.reserved == Reserved::whole)
      variables["reservation_" + pool.name] =
          variable("string", fmt::format("name of the reservation for pool {}", pool.name));
    pools[resource_name(pool)] = gke_pool(cluster, p);
  }
  Json resources = {{"google_container_cluster", {{"cluster", gke_cluster(cluster)}}},
                    {"google_container_node_pool", std::move(pools)}};
  if (cluster.bucket) {
    variables["checkpoint_bucket"] = variable("string", "name of the bucket for checkpoints");
    resources["google_storage_bucket"] = {{"checkpoints",
                                           {{"name", "${var.checkpoint_bucket}"},
                                            {"location", plan.region},
                                            {"uniform_bucket_level_access", true}}}};
  }
  const Json file = {
      {"terraform",
       {{"required_providers",
         {{"google", {{"source", "hashicorp/google"}, {"version", google_provider(cluster)}}}}}}},
      {"provider", {{"google", {{"project", "${var.project}"}, {"region", plan.region}}}}},
      {"variable", variables},
      {"resource", resources}};
  out.text = file.dump(2) + '\n';
  return out;
}

}  // namespace reckon::infrastructure
