#include "sim/scenario/resolve/autoscaling/karpenter_offers.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text/names_like.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/catalog_lookup.h"

namespace reckon::planning {

NodeChoice node_choice(const Draft& draft, const Machine& machine, CapacityType capacity) {
  const Accelerator* built_in =
      machine.accelerator.empty() ? nullptr : draft.catalog.find_accelerator(machine.accelerator);
  return {machine, built_in, capacity, draft.plan.region, draft.plan.zone};
}

bool is_sold(const Draft& draft, const Machine& machine, CapacityType capacity) {
  const Plan& plan = draft.plan;
  const auto& prices = draft.scenario().prices;
  if (capacity == CapacityType::spot &&
      (!plan.service.spot_machines || !draft.provider->sells_spot))
    return false;
  if (capacity == CapacityType::reserved)
    return prices && std::ranges::any_of(prices->reserved, [&](const ReservationSpec& r) {
             return r.machine == machine.name;
           });
  if (prices && prices->rates.contains(machine.name)) return true;
  const PriceQuestion question{plan.provider, plan.region, plan.zone, capacity,
                               prices && prices->suspect};
  const auto known = [&](const std::string& item, Offering::Covers covers) {
    return find_price(draft.catalog, question, item, covers).has_value();
  };
  if (machine.accelerator.empty()) return known(machine.name, Offering::Covers::machine);
  return known(machine.name, Offering::Covers::machine_with_accelerators);
}

bool check_karpenter(Draft& draft) {
  if (draft.plan.service.karpenter_labels.empty()) {
    std::vector<std::string> with;
    for (const ServiceRules& s : draft.catalog.services)
      if (!s.karpenter_labels.empty()) with.push_back(s.id.name);
    draft.error("cluster.autoscaler",
                fmt::format("Karpenter is not simulated under {}", draft.plan.service.called),
                fmt::format("service: {}", join(with, " or ")));
    return false;
  }
  if (draft.scenario().cluster.karpenter) return true;
  draft.error("cluster.autoscaler", "Karpenter makes no nodes without a NodePool",
              "karpenter: {nodePools: [{name: default, requirements: []}]}");
  return false;
}

bool check_karpenter_keys(Draft& draft, const KarpenterSpec& spec) {
  const std::string& prefix = draft.plan.service.karpenter_labels;
  const std::vector<std::string> known = label_keys(prefix);
  const std::size_t before = draft.errors.size();
  for (const NodePoolSpec& pool : spec.node_pools) {
    const std::string path = fmt::format("cluster.karpenter.nodePools.{}", pool.name);
    for (std::size_t i = 0; i < pool.requirements.size(); ++i)
      if (std::ranges::find(known, pool.requirements[i].key) == known.end())
        draft.error(
            fmt::format("{}.requirements.{}.key", path, i),
            fmt::format("no machine of the catalog has the label '{}'{}", pool.requirements[i].key,
                        did_you_mean(pool.requirements[i].key, known)),
            fmt::format("labels: {}", join(known, ", ")));
    const bool scheduled = std::ranges::any_of(
        pool.budgets, [](const DisruptionBudget& b) { return !b.schedule.empty(); });
    if (scheduled && !draft.plan.start)
      draft.error(path + ".disruption.budgets",
                  "a budget with a schedule needs the time at which the run starts",
                  "start: 2026-12-04T18:00:00Z");
  }
  return draft.errors.size() == before;
}

void check_expiry(Draft& draft, const NodePoolSpec& node_pool, const Fact<Seconds>& provisioning) {
  const auto& age = node_pool.expire_after;
  if (!age || *age > provisioning.high) return;
  const std::string takes =
      fmt::format("{} ({} .. {})", format_duration(provisioning.value),
                  format_duration(provisioning.low), format_duration(provisioning.high));
  if (*age > provisioning.value)
    return draft.warn(
        fmt::format("some nodes of NodePool '{}' expire before they are ready: a node takes {} "
                    "until then, and expireAfter is {}",
                    node_pool.name, takes, format_duration(*age)));
  draft.error(fmt::format("cluster.karpenter.nodePools.{}.expireAfter", node_pool.name),
              fmt::format("most nodes would expire before they are ready, for a node takes {} "
                          "until then",
                          takes),
              fmt::format("expireAfter: above {}, or Never", format_duration(provisioning.high)));
}

}  // namespace reckon::planning
