#include "sim/queue/queue_costs.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/scenario/mig_profiles.h"
#include "sim/scenario/resolve/pricing.h"

namespace reckon {

NodeRates node_rates(const PoolSpec& pool, const std::optional<PricesSpec>& prices) {
  NodeRates rates;
  const auto* machine = std::get_if<MachineInline>(&pool.machine);
  if (machine == nullptr) return rates;
  if (machine->power_watts > 0) rates.watts = machine->power_watts;
  if (!machine->price && !machine->purchase && !machine->tariff) return rates;
  double usd_per_second = 0;
  const auto add = [&](const std::optional<MoneyText>& money, double factor) {
    if (!money) return true;
    const auto usd = planning::to_usd_rate({money->amount * factor, money->currency}, prices);
    if (usd) usd_per_second += usd->v;
    return usd.has_value();
  };
  const double written_off = machine->amortised_over ? 1 / machine->amortised_over->count() : 0;
  if (add(machine->price, 1) && add(machine->purchase, written_off) &&
      add(machine->tariff, machine->power_watts))
    rates.usd_per_second = usd_per_second;
  return rates;
}

std::vector<PartOfPool> parts_of(const PoolSpec& pool, const std::optional<PricesSpec>& prices) {
  const NodeRates rates = node_rates(pool, prices);
  const NodeGroup whole{pool.nodes.initial, pool.accelerator ? pool.accelerator->count : 0, 0};
  if (!pool.accelerator || !pool.accelerator->is_cut()) return {{whole, rates}};
  const auto cut = [&](const std::string& resource, int devices, double of_gpu) {
    PartOfPool part{whole, rates};
    part.group.resource = resource;
    part.group.gpus *= devices;
    part.group.devices_of_gpu = of_gpu;
    if (part.rates.usd_per_second) *part.rates.usd_per_second *= devices / of_gpu;
    if (part.rates.watts) *part.rates.watts *= devices / of_gpu;
    return part;
  };
  if (const auto& shared = pool.accelerator->shared)
    return {cut(shared->resource, shared->devices, shared->devices)};
  const auto slices_of = [&](const std::string& profile) {
    return mig_profile(profile, pool.accelerator->type)->slices;
  };
  int slices = 0;  // that the instances of a GPU have together
  for (const auto& [profile, count] : pool.accelerator->mig_devices)
    slices += count * slices_of(profile);
  std::vector<PartOfPool> parts;
  for (const auto& [profile, count] : pool.accelerator->mig_devices)
    parts.push_back(cut("nvidia.com/mig-" + profile, count, double(slices) / slices_of(profile)));
  return parts;
}

QueueCharges charges_of(const QueueRun& run, std::span<const Holding> holdings,
                        std::span<const NodeGroup> groups, std::span<const NodeRates> rates) {
  RECKON_CHECK(rates.size() == groups.size());
  QueueCharges out;
  out.priced =
      std::ranges::all_of(rates, [](const NodeRates& r) { return r.usd_per_second.has_value(); });
  out.powered = std::ranges::all_of(rates, [](const NodeRates& r) { return r.watts.has_value(); });
  out.of_job.resize(run.jobs.size());
  std::vector<std::size_t> group_of;  // by node
  for (std::size_t g = 0; g < groups.size(); ++g) {
    group_of.insert(group_of.end(), static_cast<std::size_t>(groups[g].nodes), g);
    const double seconds = groups[g].nodes * run.makespan_seconds;
    out.all.usd += seconds * rates[g].usd_per_second.value_or(0);
    out.all.joules += seconds * rates[g].watts.value_or(0);
  }
  for (const Holding& h : holdings) {
    const std::size_t g = group_of[static_cast<std::size_t>(h.part.node)];
    const double nodes = double(h.part.gpus) / groups[g].gpus;
    const double seconds = nodes * to_seconds(h.end - h.begin).count();
    out.of_job[h.job].usd += seconds * rates[g].usd_per_second.value_or(0);
    out.of_job[h.job].joules += seconds * rates[g].watts.value_or(0);
  }
  return out;
}

}  // namespace reckon
