#include <algorithm>

#include <fmt/format.h>

#include "sim/base/unit_text.h"
#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/price_book.h"

// How the nodes of a pool are obtained: flex-start and ProvisioningRequests.
namespace reckon::planning {
namespace {

bool has_flex_start(Draft& draft, std::string_view path) {
  if (draft.plan.service.flex_start) return true;
  std::vector<std::string> with;
  for (const ServiceRules& s : draft.catalog.services)
    if (s.flex_start) with.push_back(s.id.name);
  draft.error(path, fmt::format("{} has no flex-start", draft.plan.service.called),
              fmt::format("service: {}", join(with, " or ")));
  return false;
}

/// [cloud.google.com/kubernetes-engine/docs, "About flex-start", "Limitations"; "Run a large-scale
/// workload with flex-start with queued provisioning"].
void check_flex_start(Draft& draft, const PlannedPool& pool, const PoolSpec& spec) {
  const std::string path = draft.path(pool, "provisioning");
  if (!has_flex_start(draft, path)) return;
  if (!pool.accelerator)
    draft.error(path,
                fmt::format("flex-start is for accelerators, and pool '{}' has none", pool.name),
                "provisioning: standard");
  if (pool.pricing != CapacityType::on_demand)
    draft.error(
        draft.path(pool, "pricing"),
        fmt::format("flex-start has a price of its own and is not {}", to_text(pool.pricing)),
        "leave pricing out");
  if (!pool.autoscaling || pool.nodes_initial > 0 || pool.nodes_min > 0)
    draft.error(draft.path(pool, "nodes"), "a pool of flex-start nodes is scaled from none",
                fmt::format("autoscaling: true, with nodes: {{initial: 0, min: 0, max: {}}}",
                            std::max(1, pool.nodes_max)));
  const Seconds longest{draft.catalog.operations.at(keys::kFlexStartRun).value};
  if (spec.max_run_duration && *spec.max_run_duration > longest)
    draft.error(draft.path(pool, "max_run_duration"),
                fmt::format("flex-start nodes run for at most {}", format_duration(longest)),
                "a job that takes longer goes on from its checkpoint, on nodes that wait in the "
                "queue again");
}

void check_request(Draft& draft, const PlannedPool& pool, ProvisioningModel model) {
  const std::string path = draft.path(pool, "provisioning");
  const bool checks = model == ProvisioningModel::check_capacity;
  if (!draft.plan.service.kubernetes)
    draft.error(path, fmt::format("{} has no ProvisioningRequests", draft.plan.service.called),
                "leave provisioning out");
  else if (checks && pool.autoscaling)
    draft.error(path, "the class check-capacity makes no nodes",
                "leave autoscaling out and give a number of nodes, or provisioning: "
                "best_effort_atomic");
  else if (!checks && !pool.autoscaling)
    draft.error(path,
                fmt::format("the class best-effort-atomic-scale-up makes nodes, and pool '{}' is "
                            "not scaled",
                            pool.name),
                "autoscaling: true, with nodes: {initial: 0, min: 0, max: 4}");
}

}  // namespace

void make_flex_start(const Draft& draft, PlannedPool& pool, std::optional<Seconds> run,
                     std::optional<Seconds> wait) {
  const OperationalDefaults& operations = draft.catalog.operations;
  pool.max_run_duration = run ? *run : Seconds{operations.at(keys::kFlexStartRun).value};
  pool.capacity_wait =
      wait ? Fact<Seconds>{*wait} : seconds_fact(operations.at(keys::kCapacityWait));
}

/// An autoscaler that chooses machines chooses how they are bought as well.
void resolve_provisioning(Draft& draft) {
  const AutoscalerKind autoscaler = draft.scenario().cluster.autoscaler;
  if (autoscaler == AutoscalerKind::karpenter ||
      autoscaler == AutoscalerKind::node_auto_provisioning)
    return;
  for (PlannedPool& pool : draft.plan.pools) {
    const PoolSpec& spec = draft.spec(pool);
    const ProvisioningModel model = spec.provisioning;
    if (model != ProvisioningModel::standard && autoscaler == AutoscalerKind::slurm) {
      draft.not_yet(draft.path(pool, "provisioning"), fmt::format("{} under Slurm", to_text(model)),
                    "provisioning: standard");
      continue;
    }
    pool.provisioning_model = model;
    if (is_flex_start(model)) {
      check_flex_start(draft, pool, spec);
      make_flex_start(draft, pool, spec.max_run_duration, spec.capacity_wait);
      continue;
    }
    if (model != ProvisioningModel::standard) check_request(draft, pool, model);
    for (const auto& [key, given] : {std::pair{"max_run_duration", spec.max_run_duration},
                                     std::pair{"capacity_wait", spec.capacity_wait}})
      if (given)
        draft.error(
            draft.path(pool, key),
            fmt::format("{} is of flex-start nodes, and pool '{}' has none", key, pool.name),
            "provisioning: flex_start");
  }
}

/// The published discount is a limit: which machine has which, the catalog does not know.
void price_flex_start(const Draft& draft, PlannedPool& pool) {
  NodePrice& price = pool.price;
  if (!is_flex_start(pool.provisioning_model) || !price.known || price.source == kOwnPrices) return;
  const Fact<double>& share = draft.catalog.operations.at(keys::kFlexStartPrice);
  price.machine = scaled(price.machine, share.value);
  price.accelerators = scaled(price.accelerators, share.value);
  price.source += fmt::format(", {}", draft.catalog.sources.at(std::size_t(share.source)).id);
  PriceSpread& spread = price.spread;
  const std::string item = pool.accelerator ? pool.accelerator->name : pool.machine.name;
  spread = {.market = fmt::format("{} by flex-start ({})", item, to_text(draft.plan.provider)),
            .low = spread.low * share.low / share.value,
            .high = spread.high * share.high / share.value,
            .source = share.source};
}

}  // namespace reckon::planning
