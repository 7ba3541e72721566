#pragma once
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/price_spread.h"

// What the pools cost: the user's own prices first, then the catalog's newest row that holds there.
namespace reckon::planning {

/// Fills in the price of every pool, of the checkpoint's storage, prices_as_of and the warnings
/// about old prices.
void price_pools(Draft& draft);

/// The prices of a plan of that file in another region or capacity type, which the caller has put
/// into `plan`. What cannot be priced is unknown afterwards.
void reprice(Plan& plan, const ScenarioFile& file, const Catalog& catalog);

/// An amount as the user wrote it (a second's), in USD. usd_rate: what 1 USD costs in
/// `prices.currency`.
Parsed<UsdPerSecond> to_usd_rate(const MoneyText& money, const std::optional<PricesSpec>& prices);

}  // namespace reckon::planning
