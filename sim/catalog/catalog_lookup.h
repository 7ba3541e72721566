#pragma once
#include <string>
#include <string_view>

#include "sim/base/unit_text.h"
#include "sim/catalog/catalog.h"

// Questions whose answer is not one row: machines of a size of one's own, and prices that follow
// from other prices.
namespace reckon {

/// A machine by its name, or one of a custom family ("custom-24-98304"). nullptr `family`: it is in
/// the catalog.
struct FoundMachine {
  Machine machine;
  const CustomFamily* family = nullptr;
};
/// The error is a sentence: which rule a custom size breaks; "" for a name that means nothing here.
Parsed<FoundMachine> resolve_machine(const Catalog& catalog, const Provider& provider,
                                     std::string_view name);

struct PriceQuestion {
  Provider provider;
  std::string region, zone;
  CapacityType capacity = CapacityType::on_demand;
  bool suspect = false;  // also prices that look wrong
};
/// The price of one item.
struct FoundPrice {
  Fact<UsdPerSecond> rate;
  std::string date;  // the oldest of those that it was made from
  std::string note;  // how it was made where no row says it; "" where one does
};
/// The newest row's price. Where no row prices a machine: a custom size from its vCPUs and memory,
/// else a whole multiple of a smaller size of the family, whose vCPUs, memory and accelerators are
/// all the same multiple.
std::optional<FoundPrice> find_price(const Catalog& catalog, const PriceQuestion& question,
                                     std::string_view item, Offering::Covers covers);

}  // namespace reckon
