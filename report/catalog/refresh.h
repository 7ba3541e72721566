#pragma once
#include <limits>
#include <span>
#include <vector>

#include "exchange/prices/price_changes.h"
#include "exchange/prices/price_export.h"
#include "report/catalog/view.h"

namespace reckon {

inline constexpr std::size_t kAllRows = std::numeric_limits<std::size_t>::max();

/// What price lists say beside the catalog: the lists, what changed, what is new, what is gone,
/// and the machines that the catalog does not know. `most`: rows of a table, whose title then says
/// how many there are.
std::vector<CatalogTable> refresh_tables(std::span<const PriceExport> exports,
                                         const PriceChanges& changes, std::size_t most);

}  // namespace reckon
