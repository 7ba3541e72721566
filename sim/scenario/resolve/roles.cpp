#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario/resolve/draft.h"

// A pool's role may be left out where only one assignment is possible.
namespace reckon::planning {
namespace {

/// The only role the pool can have, or nullopt. `accelerated`: some pool of the cluster has
/// accelerators.
std::optional<Role> only_role(const PlannedPool& pool, std::size_t pools, bool accelerated,
                              StrategyKind strategy) {
  if (pools == 1) return Role::worker;
  if (pool.accelerator) return Role::worker;  // servers and chiefs with accelerators are said so
  if (accelerated && traits_of(strategy).servers) return Role::parameter_server;
  return std::nullopt;
}

void check_role_fits(Draft& draft, const PlannedPool& pool, StrategyKind strategy) {
  if (pool.role == Role::parameter_server && !traits_of(strategy).servers)
    draft.error(draft.path(pool, "role"),
                fmt::format("pool '{}' holds parameter servers, which strategy {} does not use",
                            pool.name, to_text(strategy)),
                "leave the pool out, or take strategy: {kind: parameter_server}");
  if (pool.role == Role::chief && pool.nodes_max != 1)
    draft.error(draft.path(pool, "nodes"),
                fmt::format("pool '{}' is the chief and has {} nodes; a job has one chief",
                            pool.name, pool.nodes_max),
                "nodes: 1");
}

}  // namespace

void assign_roles(Draft& draft) {
  if (!draft.all_resolved() || !draft.use) return;
  std::vector<PlannedPool>& pools = draft.plan.pools;
  // A service has none: each of its nodes computes by itself, as under strategy single.
  const auto& workload = draft.scenario().workload;
  const StrategyKind strategy = workload ? workload->strategy.kind : StrategyKind::single;
  const bool accelerated = std::any_of(
      pools.begin(), pools.end(), [](const PlannedPool& p) { return p.accelerator.has_value(); });
  draft.roles_known = true;
  for (PlannedPool& pool : pools) {
    std::optional<Role> given = draft.spec(pool).role;
    if (!given && !draft.spec(pool).fallback_for.empty()) given = Role::worker;
    const std::optional<Role> role =
        given ? given : only_role(pool, pools.size(), accelerated, strategy);
    if (!role) {
      draft.error(draft.path(pool),
                  fmt::format("pool '{}' needs a role: more than one is possible", pool.name),
                  "role: worker, chief, parameter_server or evaluator");
      draft.roles_known = false;
      continue;
    }
    pool.role = *role;
    check_role_fits(draft, pool, strategy);
  }
  if (draft.roles_known && draft.plan.pool_with(Role::worker) == nullptr) {
    draft.error("cluster.pools", "no pool has role worker", "give one pool role: worker");
    draft.roles_known = false;
  }
}

}  // namespace reckon::planning
