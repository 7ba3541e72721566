#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/scenario/resolve/draft.h"

// The expanders of the cluster-autoscaler, and Slurm in the autoscaler's place.
namespace reckon::planning {
namespace {

std::vector<std::string> services_with(const Draft& draft, bool ServiceRules::*has) {
  std::vector<std::string> names;
  for (const ServiceRules& s : draft.catalog.services)
    if (s.*has) names.push_back(s.id.name);
  return names;
}

void resolve_expanders(Draft& draft, const ClusterAutoscalerSpec& spec) {
  const std::string path = "cluster.cluster_autoscaler.";
  Plan& plan = draft.plan;
  if (!plan.service.kubernetes)
    return draft.error("cluster.cluster_autoscaler",
                       fmt::format("no cluster-autoscaler runs under {}", plan.service.called),
                       "leave cluster_autoscaler out");
  const auto has = [&](Expander e) { return std::ranges::count(spec.expander, e) > 0; };
  if (has(Expander::price) && !plan.service.price_expander)
    draft.error(path + "expander",
                fmt::format("the expander price knows no prices under {}", plan.service.called),
                fmt::format("service: {}, or the expander least-waste",
                            join(services_with(draft, &ServiceRules::price_expander), " or ")));
  if (has(Expander::priority) && spec.priorities.empty())
    draft.error(path + "expander", "the expander priority needs priorities",
                "priorities: {10: [.*on-demand.*], 50: [.*spot.*]}");
  if (!has(Expander::priority) && !spec.priorities.empty())
    draft.error(path + "priorities", "priorities count under the expander priority only",
                "expander: priority");
  plan.cluster_autoscaler = spec;
}

void resolve_slurm(Draft& draft, const SlurmPowerSpec& spec) {
  Plan& plan = draft.plan;
  std::vector<std::string> names;
  bool any = false;
  for (const PlannedPool& pool : plan.pools) {
    names.push_back(pool.name);
    any = any || pool.autoscaling;
    if (!draft.spec(pool).fallback_for.empty())
      draft.error(draft.path(pool, "fallback_for"),
                  "Slurm gives a job the nodes of one partition and knows no fallback pools",
                  "leave the pool out");
    if (pool.autoscaling && pool.nodes_min > 0)
      draft.error(draft.path(pool, "nodes"),
                  "Slurm keeps nodes by SuspendExcNodes, not by a minimum",
                  fmt::format("nodes: {{initial: {}, min: 0, max: {}}}, and slurm: "
                              "{{SuspendExcNodes: [\"{}:{}\"]}}",
                              pool.nodes_initial, pool.nodes_max, pool.name, pool.nodes_min));
  }
  if (!any)
    draft.error("cluster.autoscaler", "no pool is scaled",
                "autoscaling: true, with nodes: {initial: 0, min: 0, max: 4}");
  for (std::size_t i = 0; i < spec.suspend_exc_nodes.size(); ++i) {
    const std::string& name = spec.suspend_exc_nodes[i].pool;
    if (std::ranges::find(names, name) == names.end())
      draft.error(fmt::format("cluster.slurm.SuspendExcNodes.{}", i),
                  fmt::format("no pool is named '{}'{}", name, did_you_mean(name, names)),
                  fmt::format("pools: {}", join(names)));
  }
  plan.slurm = spec;
}

}  // namespace

void resolve_autoscalers(Draft& draft) {
  const ClusterSpec& cluster = draft.scenario().cluster;
  if (cluster.autoscaler == AutoscalerKind::cluster_autoscaler && cluster.cluster_autoscaler)
    resolve_expanders(draft, *cluster.cluster_autoscaler);
  if (cluster.autoscaler != AutoscalerKind::slurm) return;
  if (!draft.plan.service.slurm)
    return draft.error(
        "cluster.autoscaler",
        fmt::format("Slurm does not power machines of {} on and off", draft.plan.service.called),
        fmt::format("service: {}", join(services_with(draft, &ServiceRules::slurm), " or ")));
  if (!cluster.slurm)
    return draft.error("cluster.autoscaler", "Slurm saves no power without SuspendTime",
                       "slurm: {SuspendTime: 5min, ResumeTimeout: 10min}");
  resolve_slurm(draft, *cluster.slurm);
}

}  // namespace reckon::planning
