#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange/prices/price_export.h"

namespace reckon {

/// One price beside the one that the catalog has for it. USD an hour of one item.
struct PriceChange {
  Provider provider;
  std::string item, region;
  Offering::Covers covers = Offering::Covers::machine;
  CapacityType capacity = CapacityType::on_demand;
  std::optional<Fact<UsdPerSecond>> before, now;  // nullopt: it has none
  std::string before_date;
  /// now / before - 1; nullopt: one of them is missing, or was free.
  std::optional<double> relative() const;
};

struct PriceChanges {
  std::vector<PriceChange> changed;  // largest change first
  std::vector<PriceChange> added;    // the catalog has no such price
  /// The catalog has one, and lists that are complete for the region do not.
  std::vector<PriceChange> gone;
  std::int64_t same = 0;  // to a hundredth of a percent
};

/// All exports together, as they may be pages of one list.
PriceChanges price_changes(std::span<const PriceExport> exports, const Catalog& catalog);

}  // namespace reckon
