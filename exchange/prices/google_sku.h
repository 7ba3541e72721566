#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/catalog/catalog.h"

// What Google sells, by the descriptions of its SKUs, which price lists and bills share.
namespace reckon::price_lists {

struct GoogleSku {
  Offering::Covers covers = Offering::Covers::vcpu;  // or memory_gib, or accelerator
  std::string name;     // the family ("n1"), or the accelerator ("Nvidia Tesla T4")
  bool custom = false;  // of machines of a size of one's own
  bool spot = false;
};
/// "Spot Preemptible N1 Predefined Instance Core running in Americas". nullopt: something else.
std::optional<GoogleSku> google_sku(std::string_view description);

/// nullptr: the catalog does not know it.
const Accelerator* google_accelerator(std::string_view name, const Catalog& catalog);

}  // namespace reckon::price_lists
