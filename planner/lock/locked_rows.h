#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/accuracy/published_runs.h"
#include "sim/catalog/catalog.h"

// Prices and evidence as a lock keeps them, and catalogs and evidence made of them again.
namespace reckon::planner {

/// Offering, with its source in words. USD an hour where that is the very number; else USD a
/// second.
struct LockedPrice {
  std::string provider, region;
  std::vector<std::string> zones;
  std::string covers, item;  // to_text(Offering::Covers), "storage"
  int count = 1;
  // Of `count` of the item together:
  std::optional<double> on_demand_usd_per_hour, spot_usd_per_hour;
  std::optional<double> on_demand_usd_per_second, spot_usd_per_second;
  std::string date, source;
  bool suspect = false;
  int layer = 0;
  friend bool operator==(const LockedPrice&, const LockedPrice&) = default;
};

/// Of these providers, in the catalog's order.
std::vector<LockedPrice> locked_prices(const Catalog& catalog, const std::set<std::string>& of);
/// Puts them in place of what the catalog has of their providers; other providers' stay.
void set_prices(Catalog& catalog, std::span<const LockedPrice> prices);

/// A published run: its fields by name, those that say something.
struct LockedRun {
  std::string id, source, trust;
  double samples_per_second = 0, peak_memory_bytes = 0;  // measured
  bool peak_is_of_device = false;
  std::map<std::string, std::string> run;
};

/// Which runs of a source there were: 8 hexadecimal digits each, sorted, one behind the other.
struct LockedSource {
  std::string source;
  std::string runs;
};

/// Name of a run's content: equal for equal runs, whatever their line and column order.
std::string name_of(const PublishedRun& run);
LockedRun locked(const PublishedRun& run);
std::vector<LockedSource> locked_sources(std::span<const PublishedRun> runs);

/// The evidence of then.
struct RestoredRuns {
  std::vector<PublishedRun> runs;  // texts in `pool`, or of `today`
  std::size_t lost = 0;            // that there were, are gone or changed, and were not used
};
RestoredRuns restored_runs(std::span<const PublishedRun> today,
                           std::span<const LockedSource> evidence, std::span<const LockedRun> used,
                           TextPool& pool);

}  // namespace reckon::planner
