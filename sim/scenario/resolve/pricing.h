#pragma once
#include "sim/scenario/resolve/draft.h"

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

/// Days between two ISO dates ("2026-08-20"; only year and month count as the first); nullopt: not
/// a date.
std::optional<int> days_between(std::string_view from, std::string_view to);

}  // namespace reckon::planning
