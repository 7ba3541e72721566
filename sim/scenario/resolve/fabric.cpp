#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario/resolve/draft.h"

// The wires between nodes.
namespace reckon::planning {
namespace {

constexpr std::string_view kFabric = "cluster.fabric.";

/// Rails need as many accelerators next to each card.
void check_rails(Draft& draft, const PlannedPool& pool, int nics) {
  if (!pool.accelerator || pool.slice || pool.accelerators_per_node % nics == 0) return;
  draft.error(
      std::string(kFabric) + "nics",
      fmt::format("{} network cards on rails do not divide the {} accelerators of a node of "
                  "'{}'",
                  nics, pool.accelerators_per_node, pool.name),
      "every card stands beside as many accelerators");
}

}  // namespace

void resolve_fabric(Draft& draft) {
  const auto& spec = draft.scenario().cluster.fabric;
  if (!spec || !draft.roles_known) return;
  PlannedFabric& fabric = draft.plan.fabric;
  const PlannedPool& worker = *draft.plan.pool_with(Role::worker);
  fabric.rails = spec->rails.value_or(false);
  fabric.nics = spec->nics.value_or(fabric.rails ? std::max(1, worker.accelerators_per_node) : 1);
  fabric.nodes_per_leaf = spec->nodes_per_leaf.value_or(0);
  fabric.oversubscription = spec->oversubscription.value_or(1);
  fabric.in_network_reduction = spec->in_network_reduction.value_or(false);
  if (worker.slice)
    draft.error("cluster.fabric",
                fmt::format("pool '{}' is a TPU slice, whose chips have links of "
                            "their own",
                            worker.name),
                "leave fabric out");
  if (fabric.rails) check_rails(draft, worker, fabric.nics);
}

}  // namespace reckon::planning
