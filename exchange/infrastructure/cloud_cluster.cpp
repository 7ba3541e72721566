#include "exchange/infrastructure/cloud_cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "exchange/kubernetes/kubernetes.h"

namespace reckon {
namespace {

std::string term_of(const Catalog& catalog, const Plan& plan, const std::string& key) {
  const ClusterNames* names = catalog.find_cluster_names(to_text(plan.service.id));
  const ClusterNames::Name* name = names == nullptr ? nullptr : names->find(key);
  return name == nullptr ? "" : name->text;
}

/// GKE taints nodes with accelerators, and labels them, by itself. AKS labels them; the prefix of
/// its own labels is not the user's. EKS does neither.
void add_names(CloudPool& out, const Plan& plan, const Catalog& catalog) {
  const PlannedPool& pool = *out.pool;
  const bool by_service = plan.service.cluster_tool == "gcloud";
  if (pool.accelerator && !by_service) {
    if (const std::string taint = term_of(catalog, plan, "taints.gpu"); !taint.empty())
      out.taints.push_back(parse_taint(taint));
    const std::string key = term_of(catalog, plan, "labels.accelerator");
    const std::string value = term_of(catalog, plan, "accelerators." + pool.accelerator->name);
    if (!key.empty() && !value.empty()) out.labels.emplace_back(key, value);
  }
  if (const std::string key = term_of(catalog, plan, "labels.pool"); !key.empty())
    out.service_labels.emplace_back(key, pool.name);
  if (!out.spot) return;
  if (const std::string key = term_of(catalog, plan, "labels.capacity"); !key.empty())
    out.service_labels.emplace_back(key, term_of(catalog, plan, "label_values.spot"));
  if (const std::string taint = term_of(catalog, plan, "taints.spot"); !taint.empty())
    out.taints.push_back(parse_taint(taint));
  const std::string key = term_of(catalog, plan, "labels.priority");
  if (!key.empty()) out.labels.emplace_back(key, term_of(catalog, plan, "label_values.spot"));
}

}  // namespace

NodeTaint parse_taint(const std::string& text) {
  const std::size_t colon = text.rfind(':'), equals = text.find('=');
  if (equals == std::string::npos) return {text.substr(0, colon), "", text.substr(colon + 1)};
  return {text.substr(0, equals), text.substr(equals + 1, colon - equals - 1),
          text.substr(colon + 1)};
}

std::string to_text(const NodeTaint& taint) {
  return taint.value.empty() ? fmt::format("{}:{}", taint.key, taint.effect)
                             : fmt::format("{}={}:{}", taint.key, taint.value, taint.effect);
}

CloudCluster cloud_cluster_of(const Plan& plan, const Catalog& catalog) {
  CloudCluster cluster{.plan = &plan, .name = kubernetes_name(plan.name)};
  const auto computing = computing_pools(plan);
  for (const PlannedPool& pool : plan.pools) {
    const int hosts = pool.slice ? pool.slice->hosts : 1;
    CloudPool p{
        .pool = &pool,
        .initial = pool.nodes_initial * hosts,
        .min = pool.nodes_min * hosts,
        .max = pool.nodes_max * hosts,
        .sold = pool.slice || catalog.find_machine(plan.provider, pool.machine.name) != nullptr,
        .spot = pool.pricing == CapacityType::spot,
        .gpu = pool.accelerator && pool.accelerator->kind == AcceleratorKind::gpu};
    const bool computes =
        std::ranges::find(computing, &pool) != computing.end() || pool.fallback_for.has_value();
    p.compact = computes && pool.accelerator && p.max > 1;
    if (pool.reservation)
      p.reserved = pool.reservation->nodes >= pool.nodes_max ? Reserved::whole : Reserved::part;
    add_names(p, plan, catalog);
    cluster.pools.push_back(std::move(p));
  }
  for (const PlannedWorkload& job : plan.jobs)
    if (job.checkpoint.mode != CheckpointSpec::Mode::none && job.checkpoint.storage.is_default)
      cluster.bucket = true;
  return cluster;
}

}  // namespace reckon
