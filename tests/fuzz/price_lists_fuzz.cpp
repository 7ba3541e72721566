#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "exchange/bills/bill.h"
#include "exchange/prices/price_changes.h"
#include "exchange/prices/price_overlay.h"

// A price list of a cloud gives prices that a catalog can hold, or diagnostics; a bill gives lines
// of finite money, or diagnostics. The first byte says which of both.
namespace {

using namespace reckon;

const Catalog& catalog() {
  static const Catalog loaded = [] {
    const std::vector<std::filesystem::path> layers{RECKON_SOURCE_DIR "/catalogs"};
    auto made = load_catalog(layers);
    if (!made) std::abort();
    return std::move(*made);
  }();
  return loaded;
}

void require(bool condition) {
  if (!condition) std::abort();
}

void price_list(std::string_view text) {
  const auto list = read_price_export(text, "list", {{}, "2026-11-20"}, catalog());
  if (!list) return require(!format(list.error()).empty());
  for (const Offering& price : list->prices) {
    require(price.on_demand || price.spot);
    for (const auto& rate : {price.on_demand, price.spot}) {
      constexpr double kHour = 3600;
      if (!rate) continue;
      require(rate->low.v >= 0 && rate->low <= rate->value && rate->value <= rate->high);
      require(rate->high.v * kHour <= 1e6 * (1 + 1e-9));  // what a catalog believes
    }
  }
  const std::vector<PriceExport> lists{*list};
  price_changes(lists, catalog());
  const std::vector<SourcedPrices> sourced{{list->source, list->prices}};
  require(!price_overlay(sourced).empty());
}

void bill(std::string_view text) {
  const auto read = read_bill(text, "bill", {"job", "mine"}, catalog());
  if (!read) return require(!format(read.error()).empty());
  require(std::isfinite(read->usd()) && std::isfinite(read->left_out_usd));
  for (const BillLine& line : read->lines) require(std::isfinite(line.quantity) && line.rows > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0)
    price_list(text);
  else
    bill(text);
  return 0;
}
