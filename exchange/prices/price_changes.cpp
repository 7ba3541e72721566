#include "exchange/prices/price_changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace reckon {
namespace {

using Covers = Offering::Covers;
/// Of which price a change is.
using PriceName = std::tuple<Provider, Covers, std::string, std::string, CapacityType>;
/// What a complete list lists all of: provider, region, kind of price, capacity.
using Scope = std::tuple<Provider, std::string, Covers, CapacityType>;

constexpr std::array kSold{CapacityType::on_demand, CapacityType::spot};

const std::optional<Fact<UsdPerSecond>>& rate_of(const Offering& offering, CapacityType capacity) {
  return capacity == CapacityType::spot ? offering.spot : offering.on_demand;
}

Fact<UsdPerSecond> of_one(Fact<UsdPerSecond> rate, int count) {
  const double share = 1.0 / count;
  rate.value = rate.value * share;
  rate.low = rate.low * share;
  rate.high = rate.high * share;
  return rate;
}

PriceChange change_of(const Offering& offering, CapacityType capacity) {
  PriceChange change;
  change.provider = offering.provider;
  change.item = offering.item;
  change.region = offering.region;
  change.covers = offering.covers;
  change.capacity = capacity;
  return change;
}

/// A service's own machines have list prices of their own.
bool of_a_service(const Offering& offering, const Catalog& catalog) {
  const Machine* machine = catalog.find_machine(offering.provider, offering.item);
  return machine != nullptr && !machine->services.empty();
}

}  // namespace

std::optional<double> PriceChange::relative() const {
  if (!before || !now || before->value.v <= 0) return std::nullopt;
  return now->value.v / before->value.v - 1;
}

PriceChanges price_changes(std::span<const PriceExport> exports, const Catalog& catalog) {
  std::map<PriceName, const Offering*> listed;
  std::set<Scope> scopes;
  for (const PriceExport& each : exports) {
    for (const Offering& offering : each.prices) {
      for (const CapacityType capacity : kSold) {
        if (!rate_of(offering, capacity)) continue;
        listed[{offering.provider, offering.covers, offering.item, offering.region, capacity}] =
            &offering;
        if (each.complete)
          scopes.emplace(offering.provider, offering.region, offering.covers, capacity);
      }
    }
  }
  PriceChanges out;
  for (const auto& [name, offering] : listed) {
    const CapacityType capacity = std::get<CapacityType>(name);
    PriceChange change = change_of(*offering, capacity);
    change.now = of_one(*rate_of(*offering, capacity), offering->count);
    if (const Offering* known =
            catalog.find_offering(offering->provider, offering->region, "", offering->item,
                                  offering->covers, capacity, true)) {
      change.before = of_one(*rate_of(*known, capacity), known->count);
      change.before_date = known->date;
    }
    constexpr double kSame = 1e-4;
    const auto relative = change.relative();
    if (!change.before)
      out.added.push_back(std::move(change));
    else if (relative && std::abs(*relative) < kSame)
      ++out.same;
    else
      out.changed.push_back(std::move(change));
  }
  std::set<PriceName> told;
  for (const Offering& known : catalog.offerings) {
    for (const CapacityType capacity : kSold) {
      const PriceName name{known.provider, known.covers, known.item, known.region, capacity};
      if (!rate_of(known, capacity) || listed.contains(name) ||
          !scopes.contains({known.provider, known.region, known.covers, capacity}) ||
          of_a_service(known, catalog) || !told.insert(name).second)
        continue;
      PriceChange change = change_of(known, capacity);
      change.before = of_one(*rate_of(known, capacity), known.count);
      change.before_date = known.date;
      out.gone.push_back(std::move(change));
    }
  }
  std::ranges::stable_sort(out.changed, [](const PriceChange& a, const PriceChange& b) {
    return std::abs(a.relative().value_or(1)) > std::abs(b.relative().value_or(1));
  });
  return out;
}

}  // namespace reckon
