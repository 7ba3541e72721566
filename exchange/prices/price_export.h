#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/catalog/catalog.h"

// Price lists as the clouds and SkyPilot hand them out, in the catalog's words.
namespace reckon {

/// What the file does not say.
struct PriceExportHints {
  std::optional<Provider> provider;  // of a SkyPilot table; nullopt: whose regions it names
  std::string date;                  // ISO: of a file without a date of its own
};

struct PriceExport {
  Source source;      // as sources.yaml has it; its date is that of the prices
  Provider provider;  // all prices are of one
  /// Each of one item in a region, by the names of the catalog. Where an export has several prices
  /// of one (zones, a history), the price has the range from the least to the largest.
  std::vector<Offering> prices;
  std::map<std::string, std::int64_t> unknown;  // machines and accelerators, with their lines
  std::int64_t passed_over = 0;  // lines of what reckon has no price for: reservations, licences
  /// Other files of the overlay, by name, without headers of tables: machines that the catalog does
  /// not have, and their provider.
  std::map<std::string, std::string> files;
  /// Of a region that it has, it lists all that is sold: what it lacks is gone.
  bool complete = true;
};

/// Takes by their contents, whatever the name of the file:
/// - the AWS price list of AmazonEC2 (JSON offer file: products, terms.OnDemand), Linux on shared
///   hardware without licences;
/// - `aws ec2 describe-spot-price-history` (SpotPriceHistory): the mean over time and zones of each
///   machine and region, from the lowest to the highest that was recorded;
/// - Google's Cloud Billing catalog (skus): machines of the catalog from their cores and memory;
/// - Azure's retail prices (Items), virtual machines without Windows;
/// - a SkyPilot catalog (vms.csv);
/// - machines of the user's own list, a line each (CSV with provider, machine, vcpus, memory_gib,
///   region, usd_per_hour and more): what the catalog lacks of them, it gets.
/// JSON is read value by value (json_parts.h): memory is for the prices that are kept. Prices must
/// be in USD. Mistakes are collected, up to 200.
Expected<PriceExport> read_price_export(std::string_view bytes, const std::string& file,
                                        const PriceExportHints& hints, const Catalog& catalog);

}  // namespace reckon
