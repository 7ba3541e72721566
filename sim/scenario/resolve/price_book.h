#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/resolve/pricing.h"

// What the parts of pricing share. Internal to sim/scenario/resolve.
namespace reckon::planning {

inline constexpr std::string_view kOwnPrices = "scenario prices";

/// The price of one item for an hour: whose, and as of when.
struct Price {
  UsdPerSecond rate{};
  std::string date;  // "" for the user's own
  std::string source, item;
  std::string note = {};  // how it was made where no row says it
  PriceRange range = {};
};

struct Book {
  Draft& draft;
  std::map<std::string, UsdPerSecond> own;                   // by canonical item name: prices.rates
  std::map<std::string, std::set<std::string>> dated;        // date -> items priced by it
  std::set<std::string> notes;                               // of prices that no row says
  std::vector<std::pair<std::size_t, std::string>> unknown;  // pool, item without a price
  std::string day = {};                                      // on which the run is thought to start
  double later_years = 0;                                    // years after it that prices are paid
};

/// As the catalog names what a price is for; "": unknown.
std::string canonical_item(const Draft& draft, const std::string& name);

/// Reported unless it can be counted on 65,536 nodes for years. The reader bounds what is written;
/// an exchange rate, a purchase written off in a second and many accelerators make more of it.
bool check_hour(Draft& draft, const std::string& path, std::string_view what, UsdPerSecond rate);

/// usd_rate.cpp: reports a `prices.usd_rate` that is probably the wrong way round: with it an
/// accelerator of the user's costs many times what any list says, or next to nothing, and with its
/// inverse as much as lists say.
void check_usd_rate(Book& book);

/// reservations.cpp: deals `prices.reserved` out to the pools.
void apply_reservations(Book& book);
/// The same of `prices.minimum_rental`.
void apply_minimum_rentals(Book& book);
/// The same of `prices.egress`, with what the provider takes for a GB.
void resolve_egress(Draft& draft);

}  // namespace reckon::planning
