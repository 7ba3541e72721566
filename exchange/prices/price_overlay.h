#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "exchange/prices/price_export.h"

namespace reckon {

/// Prices of one source.
struct SourcedPrices {
  Source source;
  std::span<const Offering> prices;
  std::map<std::string, std::string> files = {};  // PriceExport::files
};

/// A catalog directory of these prices, which --catalog takes: its files by name, prices.csv,
/// storage_prices.csv where there are some of storage, and sources.yaml. Of two prices of one item,
/// place, capacity and day the later counts.
std::map<std::string, std::string> price_overlay(std::span<const SourcedPrices> sourced);

}  // namespace reckon
