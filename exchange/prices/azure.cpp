#include <fmt/format.h>

#include "exchange/prices/price_rows.h"

namespace reckon::price_lists {
namespace {

/// Pages of the Azure Retail Prices API
/// (learn.microsoft.com/rest/api/cost-management/retail-prices): `Items`, or several pages in a
/// list.
class AzureRetailPrices final : public JsonPrices {
 public:
  explicit AzureRetailPrices(const Catalog& catalog) : catalog_(catalog) {}

  std::vector<std::string_view> paths() const override { return {"Items.*", "*.Items.*"}; }

  void take(const JsonPart& part, Mistakes& mistakes) override {
    const YamlNode& item = part.value;
    const std::string_view name = text_at(item, "armSkuName");
    const std::string_view sku = text_at(item, "skuName");
    const auto has = [](std::string_view text, std::string_view word) {
      return text.find(word) != std::string_view::npos;
    };
    const bool of_machine = text_at(item, "serviceName") == "Virtual Machines" &&
                            text_at(item, "type") == "Consumption" &&
                            text_at(item, "unitOfMeasure") == "1 Hour" && !name.empty();
    if (!of_machine || has(text_at(item, "productName"), "Windows") ||
        has(sku, "Low Priority")) {  // what came before spot
      ++passed_over_;
      return;
    }
    const Machine* machine = catalog_.find_machine(Provider{"azure"}, name);
    if (machine == nullptr) {
      ++unknown_[std::string(name)];
      return;
    }
    if (const std::string_view currency = text_at(item, "currencyCode"); currency != "USD") {
      mistakes.add(item.at, fmt::format("the price of {} is in {}", name, currency),
                   "ask for prices in USD: currencyCode='USD'");
      return;
    }
    const auto usd = price_at(item, "retailPrice", mistakes);
    if (!usd || *usd == 0) return;
    rows_.add(covers_of(*machine), machine->name, std::string(text_at(item, "armRegionName")),
              has(sku, "Spot") ? CapacityType::spot : CapacityType::on_demand, *usd);
  }

  PriceExport finish(const std::string& file, const PriceExportHints& hints,
                     Mistakes& mistakes) override {
    PriceExport out;
    out.provider = provider_named("azure", catalog_, file, mistakes);
    out.source = {fmt::format("azure-retail-prices-{}", hints.date),
                  fmt::format("Azure Retail Prices API, {}", file), hints.date};
    out.prices = rows_.offerings(out.provider, hints.date);
    out.unknown = std::move(unknown_);
    out.passed_over = passed_over_;
    return out;
  }

 private:
  const Catalog& catalog_;
  PriceRows rows_;
  std::map<std::string, std::int64_t> unknown_;
  std::int64_t passed_over_ = 0;
};

}  // namespace

std::unique_ptr<JsonPrices> azure_retail_prices(const Catalog& catalog) {
  return std::make_unique<AzureRetailPrices>(catalog);
}

}  // namespace reckon::price_lists
