#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario/resolve/draft.h"

// Fallback pools: their nodes replace those of another pool while these cannot be had.
namespace reckon::planning {
namespace {

bool same_node(const PlannedPool& a, const PlannedPool& b) {
  const bool accelerators = a.accelerator.has_value() == b.accelerator.has_value() &&
                            (!a.accelerator || a.accelerator->name == b.accelerator->name) &&
                            a.accelerators_per_node == b.accelerators_per_node;
  return accelerators && !a.slice && !b.slice && a.machine.vcpus == b.machine.vcpus &&
         a.machine.memory.value == b.machine.memory.value &&
         a.machine.network.value == b.machine.network.value;
}

/// Under an expander any node that a pod of the other pool fits may serve it.
bool serves_pods_of(const PlannedPool& pool, const PlannedPool& home) {
  PlannedPool smaller = pool;
  smaller.machine.vcpus = std::min(pool.machine.vcpus, home.machine.vcpus);
  smaller.machine.memory.value = std::min(pool.machine.memory.value, home.machine.memory.value);
  smaller.machine.network.value = std::min(pool.machine.network.value, home.machine.network.value);
  return same_node(smaller, home);
}

/// The pool that has the fallback; nullptr: reported.
PlannedPool* named_by(Draft& draft, const PlannedPool& pool) {
  const std::string& name = draft.spec(pool).fallback_for;
  std::vector<std::string> names;
  for (PlannedPool& other : draft.plan.pools) {
    if (other.id == pool.id) continue;
    if (other.name == name) return &other;
    names.push_back(other.name);
  }
  draft.error(draft.path(pool, "fallback_for"),
              fmt::format("no other pool is named '{}'{}", name, did_you_mean(name, names)),
              names.empty() ? "" : fmt::format("pools: {}", join(names)));
  return nullptr;
}

/// The autoscaler asks for a fallback's nodes, and gives up on those that do not come.
void check_scaling(Draft& draft, const PlannedPool& pool, const PlannedPool& preferred) {
  for (const PlannedPool* one : {&pool, &preferred})
    if (!one->autoscaling)
      draft.error(
          draft.path(*one),
          fmt::format("pool '{}' is the fallback of '{}' when the autoscaler says so, and '{}' "
                      "is not autoscaled",
                      pool.name, preferred.name, one->name),
          "autoscaling: true, with nodes: {initial: 0, min: 0, max: 4}");
  if (preferred.nodes_initial > 0 || preferred.nodes_min > 0)
    draft.error(draft.path(preferred, "nodes"),
                fmt::format("no fallback exists for the nodes that pool '{}' begins with, and '{}' "
                            "is its fallback",
                            preferred.name, pool.name),
                fmt::format("nodes: {{initial: 0, min: 0, max: {}}}", preferred.nodes_max));
  if (pool.nodes_initial > 0 || pool.nodes_min > 0)
    draft.error(
        draft.path(pool, "nodes"),
        fmt::format("pool '{}' has nodes only as the fallback of '{}'", pool.name, preferred.name),
        fmt::format("nodes: {{initial: 0, min: 0, max: {}}}", pool.nodes_max));
}

void resolve_fallback(Draft& draft, PlannedPool& pool) {
  PlannedPool* preferred = named_by(draft, pool);
  if (preferred == nullptr) return;
  const std::string path = draft.path(pool, "fallback_for");
  if (!draft.spec(*preferred).fallback_for.empty())
    return draft.error(path,
                       fmt::format("pool '{}' is itself a fallback of another", preferred->name),
                       "name the pool whose nodes are wanted first");
  const auto taken = std::ranges::find_if(draft.plan.pools, [&](const PlannedPool& other) {
    return other.fallback_for == index(preferred->id);
  });
  const auto& cluster = draft.scenario().cluster;
  const bool chosen =
      cluster.cluster_autoscaler && cluster.autoscaler == AutoscalerKind::cluster_autoscaler;
  if (taken != draft.plan.pools.end() && !chosen)
    return draft.not_yet(path, fmt::format("a second fallback pool of '{}'", preferred->name),
                         fmt::format("pool '{}' does already; with cluster_autoscaler: "
                                     "{{expander: priority}} any number may",
                                     taken->name));
  if (pool.role != Role::worker || preferred->role != Role::worker)
    return draft.not_yet(path, "a fallback for pools other than the workers'", "role: worker");
  if (chosen && !serves_pods_of(pool, *preferred))
    return draft.error(
        path, fmt::format("a pod of '{}' does not fit a node of '{}'", preferred->name, pool.name),
        "the same accelerators, and at least its vCPUs, memory and network");
  if (chosen && draft.spec(*preferred).after)
    return draft.error(draft.path(*preferred, "after"),
                       "an expander chooses between the pools, and waits for none",
                       "leave after out");
  if (!chosen && !same_node(pool, *preferred))
    return draft.error(
        path, fmt::format("the nodes of '{}' are not those of '{}'", pool.name, preferred->name),
        "a fallback pool has the same machine and accelerators, with another capacity type");
  check_scaling(draft, pool, *preferred);
  pool.fallback_for = index(preferred->id);
  if (!preferred->patience) preferred->patience = draft.spec(pool).after;
}

}  // namespace

void resolve_fallbacks(Draft& draft) {
  if (!draft.roles_known) return;
  for (PlannedPool& pool : draft.plan.pools) {
    const PoolSpec& spec = draft.spec(pool);
    if (!spec.fallback_for.empty())
      resolve_fallback(draft, pool);
    else if (spec.after)
      draft.error(draft.path(pool, "after"),
                  fmt::format("pool '{}' is no fallback of another", pool.name),
                  "fallback_for: the pool whose nodes are waited for");
  }
}

}  // namespace reckon::planning
