#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sim/scenario/resolve/price_book.h"

namespace reckon::planning {
namespace {

constexpr double kImplausible = 20;  // times the dearest list price, or below the cheapest
constexpr double kPlausible = 5;     // likewise, of the price turned round

/// What lists say of an hour of one accelerator, whichever provider's.
struct Listed {
  double least = std::numeric_limits<double>::infinity(), most = 0;
};

Listed listed(const Catalog& catalog, const std::string& accelerator) {
  Listed range;
  for (const Offering& o : catalog.offerings) {
    double accelerators =
        o.covers == Offering::Covers::accelerator && o.item == accelerator ? double(o.count) : 0.0;
    if (o.covers == Offering::Covers::machine_with_accelerators) {
      const Machine* machine = catalog.find_machine(o.provider, o.item);
      if (machine != nullptr && machine->accelerator == accelerator)
        accelerators = double(machine->accelerator_count) * o.count;
    }
    for (const auto& price : {o.on_demand, o.spot})
      if (price && accelerators > 0 && price->value.v > 0) {
        const double hour = price->value.v * 3600 / accelerators;
        range.least = std::min(range.least, hour);
        range.most = std::max(range.most, hour);
      }
  }
  return range;
}

double usd_per_accelerator(const PlannedPool& pool) {
  const double nano = double(pool.price.machine.nano_usd_per_hour) +
                      double(pool.price.accelerators.nano_usd_per_hour);
  const int accelerators = pool.slice ? pool.slice->chips : pool.accelerators_per_node;
  return accelerators > 0 ? nano * 1e-9 / accelerators : 0;
}

}  // namespace

void check_usd_rate(Book& book) {
  Draft& draft = book.draft;
  const auto& prices = draft.scenario().prices;
  if (!prices || prices->currency == "USD" || !prices->usd_rate || *prices->usd_rate <= 0) return;
  const double rate = *prices->usd_rate;
  for (const PlannedPool& pool : draft.plan.pools) {
    if (!draft.resolved[index(pool.id)] || !pool.accelerator || pool.price.source != kOwnPrices)
      continue;
    const double hour = usd_per_accelerator(pool);
    const double turned = hour * rate * rate;  // the amount times the rate, not over it
    const Listed range = listed(draft.catalog, pool.accelerator->name);
    if (!(hour > 0) || range.most <= 0) continue;
    const bool absurd = hour > kImplausible * range.most || hour < range.least / kImplausible;
    const bool fits = turned < kPlausible * range.most && turned > range.least / kPlausible;
    if (!absurd || !fits) continue;
    draft.error("prices.usd_rate",
                fmt::format("{:g} {} for one USD makes an hour of a {} {} (lists: {:.2f} to {:.2f} "
                            "USD): the rate is probably the wrong way round",
                            rate, prices->currency, pool.accelerator->name,
                            fmt::format("{:.4g} USD", hour), range.least, range.most),
                fmt::format("usd_rate: {:.6g}, if {} {} is what one USD costs", 1 / rate,
                            fmt::format("{:.6g}", 1 / rate), prices->currency));
    return;
  }
}

}  // namespace reckon::planning
