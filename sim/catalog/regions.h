#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/fact.h"
#include "sim/catalog/providers.h"

namespace reckon {

/// Where a region is, for limits on where data may be and on how clean the power is.
struct Region {
  Provider provider;
  std::string name;
  std::vector<std::string> jurisdictions;   // ISO 3166 country codes, and "EU"
  std::optional<double> carbon_free;        // share of the power, 0..1; nullopt: not published
  std::optional<double> grid_gco2_per_kwh;  // of the grid that it stands on
  SourceId source{};                        // of both
};

/// The regions of a catalog's layers (catalogs/regions.csv), by provider and name. Errors are those
/// of load_catalog.
Expected<std::vector<Region>> load_regions(std::span<const std::filesystem::path> layers);
/// nullptr: not known.
const Region* find_region(const std::vector<Region>& regions, const Provider& provider,
                          std::string_view name);

}  // namespace reckon
