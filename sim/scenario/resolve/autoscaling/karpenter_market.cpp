#include "sim/scenario/resolve/autoscaling/karpenter_market.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/autoscaling/karpenter_offers.h"
#include "sim/scenario/resolve/pricing.h"

namespace reckon {
namespace planning {
namespace {

constexpr std::array kCapacities{CapacityType::spot, CapacityType::on_demand};
constexpr std::size_t kMostOffers = 2000;

/// Prices are of pools: the file with one whose machine stands for all.
ScenarioFile with_a_pool(const ScenarioFile& file) {
  ScenarioFile with = file;
  PoolSpec pool;
  pool.name = "nodes";
  pool.machine = MachineByName{};
  with.scenario.cluster.pools = {std::move(pool)};
  with.scenario.expect.clear();
  return with;
}

void add_offers(Draft& draft, const KarpenterSpec& spec) {
  const std::string& prefix = draft.plan.service.karpenter_labels;
  for (const Machine& machine : draft.catalog.machines) {
    if (machine.provider != draft.plan.provider || machine.accelerator_count == 0 ||
        !machine.offered_under(draft.plan.service.id))
      continue;
    const Accelerator* accelerator = draft.catalog.find_accelerator(machine.accelerator);
    if (accelerator == nullptr) continue;
    for (std::size_t k = 0; k < spec.node_pools.size(); ++k)
      for (const CapacityType capacity : kCapacities) {
        const NodeChoice choice = node_choice(draft, machine, capacity);
        if (unmet(spec.node_pools[k].requirements, choice, prefix) != nullptr ||
            !is_sold(draft, machine, capacity))
          continue;
        PlannedPool pool;
        pool.name = fmt::format("{}-{}", machine.name, to_text(capacity));
        pool.machine = machine;
        pool.accelerator = *accelerator;
        pool.accelerators_per_node = machine.accelerator_count;
        pool.pricing = capacity;
        pool.node_pool = k;
        pool.nodes_max = 1;
        draft.plan.pools.push_back(std::move(pool));
      }
  }
}

/// Of the requirements with minValues.
std::vector<std::string> flexible_values(const Draft& draft, const NodePoolSpec& spec,
                                         const PlannedPool& pool) {
  std::vector<std::string> values;
  const NodeChoice choice = node_choice(draft, pool.machine, pool.pricing);
  for (const NodeRequirement& r : spec.requirements)
    if (r.min_values)
      values.push_back(label_of(choice, r.key, draft.plan.service.karpenter_labels).value_or(""));
  return values;
}

/// NodePools that no launch can ever satisfy.
void check_min_values(Draft& draft, const KarpenterSpec& spec) {
  for (std::size_t k = 0; k < spec.node_pools.size(); ++k) {
    std::vector<NodeChoice> choices;
    for (const PlannedPool& pool : draft.plan.pools)
      if (pool.node_pool == k) choices.push_back(node_choice(draft, pool.machine, pool.pricing));
    if (choices.empty()) continue;
    const auto& requirements = spec.node_pools[k].requirements;
    const NodeRequirement* missed =
        too_few_values(requirements, choices, draft.plan.service.karpenter_labels);
    if (missed != nullptr)
      draft.error(fmt::format("cluster.karpenter.nodePools.{}.requirements.{}.minValues",
                              spec.node_pools[k].name, missed - requirements.data()),
                  fmt::format("the NodePool admits machines with fewer than {} values of {}",
                              *missed->min_values, missed->key),
                  "a smaller minValues, or wider requirements");
  }
}

void check_offers(Draft& draft) {
  const std::string at = "cluster.karpenter.nodePools";
  const auto& pools = draft.plan.pools;
  if (pools.empty())
    return draft.error(
        at,
        fmt::format("the NodePools admit no machine with GPUs whose price is known in {}",
                    draft.plan.region),
        "other requirements, or another region");
  if (pools.size() > kMostOffers)
    return draft.error(at,
                       fmt::format("the NodePools admit {} machines and capacity types, of at "
                                   "most {}",
                                   pools.size(), kMostOffers),
                       "narrower requirements");
  std::vector<std::string> kinds;
  for (const PlannedPool& pool : pools)
    if (std::ranges::find(kinds, pool.accelerator->name) == kinds.end())
      kinds.push_back(pool.accelerator->name);
  if (kinds.size() > 1)
    draft.error(at,
                fmt::format("the NodePools admit {} kinds of GPUs, and the length of a job is said "
                            "for one",
                            kinds.size()),
                fmt::format("a requirement on {}/instance-gpu-name, of: {}",
                            draft.plan.service.karpenter_labels, join(kinds)));
}

}  // namespace
}  // namespace planning

Expected<KarpenterOffers> karpenter_offers(const ScenarioFile& file, const Catalog& catalog) {
  const ScenarioFile priced = planning::with_a_pool(file);
  planning::Draft draft{.file = priced, .catalog = catalog};
  draft.plan.start = file.scenario.start;
  draft.resolved = {true};
  if (!planning::resolve_place(draft) || !planning::check_karpenter(draft) || !draft.errors.empty())
    return tl::unexpected(std::move(draft.errors));
  const KarpenterSpec& spec = *file.scenario.cluster.karpenter;
  if (!planning::check_karpenter_keys(draft, spec)) return tl::unexpected(std::move(draft.errors));
  planning::add_offers(draft, spec);
  planning::check_offers(draft);
  planning::check_min_values(draft, spec);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  planning::price_pools(draft);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  const Fact<Seconds> delay = planning::seconds_fact(
      catalog.operations.at(keys::provisioning(draft.plan.provider, keys::NodeKind::gpu)));
  for (const NodePoolSpec& node_pool : spec.node_pools)
    planning::check_expiry(draft, node_pool, delay);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  KarpenterOffers out;
  for (const PlannedPool& pool : draft.plan.pools)
    out.offers.push_back(
        {pool.machine,
         pool.pricing,
         *pool.node_pool,
         {pool.price.machine.nano_usd_per_hour + pool.price.accelerators.nano_usd_per_hour},
         delay,
         planning::flexible_values(draft, spec.node_pools[*pool.node_pool], pool)});
  planning::resolve_reclaim(draft);
  planning::resolve_shortage(draft);
  if (!draft.errors.empty()) return tl::unexpected(std::move(draft.errors));
  out.reclaim = draft.plan.reclaim.law;
  out.notice = draft.plan.reclaim.notice;
  out.shortage = draft.plan.shortage;
  out.warnings = std::move(draft.plan.warnings);
  return out;
}

}  // namespace reckon
