#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/catalog/catalog_lookup.h"
#include "sim/scenario/plan.h"

// How far a price may lie from the one that the catalog has: a price has a date and a run is later,
// and where zones differ the row has their range.
//
// The logarithm of a price moves like a random walk: with f the fall and r the rise that a price of
// a year ago shows at the 5th and 95th percentile (catalogs/operations.yaml, `prices`, fitted to
// recorded prices of the same machines in the same regions), after t years
//
//   low = exp(-sqrt(a^2 + t ln(1 - f)^2)),   high = exp(sqrt(b^2 + t ln(1 + r)^2))
//
// where exp(-a) and exp(b) are the ends of the row's own range over its value. A spot price is at
// most the list price of the same nodes: what dearer capacity would be bought for nobody asks.
// Validity: prices of accelerators and their machines, ages up to about three years, which is how
// far the recorded pairs lie apart. A price that the user says has no spread unless it has a range.
namespace reckon::planning {

/// Days between two ISO dates ("2026-08-20"; only year and month count as the first); nullopt: not
/// a date.
std::optional<int> days_between(std::string_view from, std::string_view to);

/// Years from a price's date ("2025-07-01") to the day of the run ("2026-12-01"); 0 where the price
/// is newer, or has no date.
double age_years(const std::string& date, const std::string& day);

/// 5th and 95th percentile of a price over the catalog's.
struct PriceRange {
  double low = 1, high = 1;  // factors
  SourceId source{};
  bool certain() const { return low == 1 && high == 1; }
};

/// Of a row's price after so many years. A user's own row (SourceId::user) has its own range only.
PriceRange range_after(const Fact<UsdPerSecond>& price, CapacityType capacity, double years,
                       const OperationalDefaults& operations);

/// Of the sum of two prices that move together: by their shares.
PriceRange sum_of(const PriceRange& one, UsdPerSecond rate, const PriceRange& other,
                  UsdPerSecond other_rate);

/// At most `most` over the price itself (the list price over the spot price), but never below 1.
PriceRange capped(PriceRange range, double most);  // a factor

/// Every price may be off by that much to either side, as the user says (`prices.uncertainty`).
PriceRange range_of(double uncertainty);  // a share: 0.1 is 10 %

/// "p4d.24xlarge on spot in us-east-1 (aws)": what is bought for one price. List prices of a
/// provider move together in all regions; spot is a market of each.
std::string market_of(const Plan& plan, const std::string& item, CapacityType capacity);

}  // namespace reckon::planning
