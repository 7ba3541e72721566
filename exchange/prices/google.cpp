#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "exchange/prices/google_sku.h"
#include "exchange/prices/price_rows.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/files/entry.h"
#include "sim/catalog/files/text.h"

namespace reckon::price_lists {
namespace {

constexpr double kGibibyte = 1073741824.0;

/// "n1" of "n1-standard-8".
std::string_view family_of(std::string_view machine) {
  return machine.substr(0, machine.find('-'));
}

/// Pages of the Cloud Billing catalog
/// (cloud.google.com/billing/docs/reference/rest/v1/services.skus): `skus`, or several pages in a
/// list. Machines are sold as vCPUs and GiB of memory.
class GoogleSkus final : public JsonPrices {
 public:
  explicit GoogleSkus(const Catalog& catalog) : catalog_(catalog) {}

  std::vector<std::string_view> paths() const override { return {"skus.*", "*.skus.*"}; }

  void take(const JsonPart& part, Mistakes& mistakes) override {
    const YamlNode& sku = part.value;
    const YamlNode* category = node_at(sku, "category");
    const std::string_view usage = category ? text_at(*category, "usageType") : "";
    const auto what = google_sku(text_at(sku, "description"));
    if (!what || (usage != "OnDemand" && usage != "Preemptible")) {
      ++passed_over_;
      return;
    }
    const CapacityType capacity =
        usage == "Preemptible" || what->spot ? CapacityType::spot : CapacityType::on_demand;
    const Accelerator* accelerator = nullptr;
    if (what->covers == Offering::Covers::accelerator) {
      accelerator = google_accelerator(what->name, catalog_);
      if (accelerator == nullptr) {
        ++unknown_[what->name];
        return;
      }
    }
    const auto usd = unit_price(sku, mistakes);
    const YamlNode* regions = node_at(sku, "serviceRegions");
    if (!usd || regions == nullptr) return;
    for (const YamlNode::Entry& region : regions->entries) {
      if (accelerator != nullptr)
        rows_.add(what->covers, accelerator->name, region.value.text, capacity, *usd);
      else
        (what->custom ? custom_
                      : families_)[{what->name, region.value.text, capacity}][what->covers] = *usd;
    }
  }

  PriceExport finish(const std::string& file, const PriceExportHints& hints,
                     Mistakes& mistakes) override {
    PriceExport out;
    out.provider = provider_named("gcp", catalog_, file, mistakes);
    out.source = {fmt::format("google-skus-{}", hints.date),
                  fmt::format("Cloud Billing catalog of Compute Engine, {}", file), hints.date};
    price_machines(out.provider);
    price_custom(out.provider);
    out.prices = rows_.offerings(out.provider, hints.date);
    out.unknown = std::move(unknown_);
    out.passed_over = passed_over_;
    return out;
  }

 private:
  struct Sold {
    std::string family, region;
    CapacityType capacity;
    friend auto operator<=>(const Sold&, const Sold&) = default;
  };
  using Rates = std::map<Sold, std::map<Offering::Covers, double>>;  // USD/h of a vCPU, of a GiB

  /// USD an hour of the last rate, beyond what is free. nullopt: it is not sold by the hour.
  std::optional<double> unit_price(const YamlNode& sku, Mistakes& mistakes) {
    const YamlNode* info = node_at(sku, "pricingInfo");
    const YamlNode* expression = info && !info->entries.empty()
                                     ? node_at(info->entries.back().value, "pricingExpression")
                                     : nullptr;
    const YamlNode* rates = expression ? node_at(*expression, "tieredRates") : nullptr;
    if (rates == nullptr || rates->entries.empty()) {
      mistakes.add(sku.at,
                   fmt::format("the SKU '{}' has no price", shortened(text_at(sku, "description"))),
                   "pricingInfo: [{pricingExpression: {tieredRates: [...]}}]");
      return std::nullopt;
    }
    const std::string_view unit = text_at(*expression, "usageUnit");
    if (unit != "h" && unit != "GiBy.h") {
      ++passed_over_;
      return std::nullopt;
    }
    const YamlNode* price = node_at(rates->entries.back().value, "unitPrice");
    if (price == nullptr) {
      mistakes.add(rates->entries.back().value.at, "'unitPrice' is missing");
      return std::nullopt;
    }
    if (const std::string_view currency = text_at(*price, "currencyCode");
        !currency.empty() && currency != "USD") {
      mistakes.add(price->at, fmt::format("the price is in {}", currency),
                   "ask for prices in USD: currencyCode=USD");
      return std::nullopt;
    }
    double usd = 0;
    constexpr double kNano = 1e-9;
    for (const auto& [key, factor] : {std::pair("units", 1.0), {"nanos", kNano}}) {
      const std::string_view text = text_at(*price, key);
      if (text.empty()) continue;  // zero is left out
      const Parsed<double> part = parse_number(text);
      usd += part ? *part * factor : -1e9;
    }
    if (usd < 0 || usd > catalog_text::kDearestHour) {
      mistakes.add(price->at,
                   fmt::format("'{}' and '{}' are no price", text_at(*price, "units"),
                               text_at(*price, "nanos")),
                   R"(whole USD and billionths: {"units": "0", "nanos": 350000000})");
      return std::nullopt;
    }
    return usd;
  }

  /// Several shapes of one family may have families of SKUs of their own: where the catalog has a
  /// price of some, those without one stay so.
  bool sold_by_family(const Machine& machine) const {
    bool family_priced = false;
    for (const Offering& known : catalog_.offerings) {
      if (known.covers != Offering::Covers::machine || known.provider != machine.provider) continue;
      if (catalog_text::same_name(known.item, machine.name)) return true;
      family_priced = family_priced || family_of(known.item) == family_of(machine.name);
    }
    return !family_priced;
  }

  void price_machines(const Provider& provider) {
    for (const Machine& machine : catalog_.machines) {
      if (machine.provider != provider || !sold_by_family(machine)) continue;
      for (const auto& [sold, rates] : families_) {
        if (sold.family != family_of(machine.name)) continue;
        const auto core = rates.find(Offering::Covers::vcpu);
        const auto memory = rates.find(Offering::Covers::memory_gib);
        if (core == rates.end() || memory == rates.end()) continue;
        const double usd =
            machine.vcpus * core->second + machine.memory.value.v / kGibibyte * memory->second;
        if (usd <= catalog_text::kDearestHour)
          rows_.add(Offering::Covers::machine, machine.name, sold.region, sold.capacity, usd);
      }
    }
  }
  void price_custom(const Provider& provider) {
    for (const CustomFamily& family : catalog_.custom_families) {
      if (family.provider != provider) continue;
      for (const auto& [sold, rates] : custom_) {
        if (sold.family != family_of(family.name)) continue;
        for (const auto& [covers, usd] : rates)
          rows_.add(covers, family.name, sold.region, sold.capacity, usd);
      }
    }
  }

  const Catalog& catalog_;
  Rates families_, custom_;
  PriceRows rows_;
  std::map<std::string, std::int64_t> unknown_;
  std::int64_t passed_over_ = 0;
};

}  // namespace

std::optional<GoogleSku> google_sku(std::string_view description) {
  GoogleSku sku;
  std::vector<std::string_view> words =
      catalog_text::words(description.substr(0, description.find(" running in")));
  const auto drop = [&](std::string_view word) {
    const auto at = std::ranges::find(words, word);
    if (at == words.end()) return false;
    words.erase(at);
    return true;
  };
  if (const auto attached = std::ranges::find(words, "attached"); attached != words.end()) {
    sku.spot = std::ranges::find(attached, words.end(), "Spot") != words.end() ||
               std::ranges::find(attached, words.end(), "Preemptible") != words.end();
    words.erase(attached, words.end());  // "GPU attached to Spot Preemptible VMs"
  }
  if (!words.empty() && (words.front() == "Spot" || words.front() == "Preemptible")) {
    sku.spot = true;
    drop("Spot");
    drop("Preemptible");
  }
  if (words.empty()) return std::nullopt;
  if (words.back() == "GPU") {
    words.pop_back();
    sku.covers = Offering::Covers::accelerator;
    sku.name = fmt::format("{}", fmt::join(words, " "));
    return sku.name.starts_with("Nvidia ") ? std::optional(sku) : std::nullopt;
  }
  if (words.back() != "Core" && words.back() != "Ram") return std::nullopt;
  sku.covers = words.back() == "Core" ? Offering::Covers::vcpu : Offering::Covers::memory_gib;
  words.pop_back();
  drop("Instance");
  drop("Predefined");
  sku.custom = drop("Custom");
  const std::string left = fmt::format("{}", fmt::join(words, " "));
  // The families that Google's descriptions do not name by their letter.
  if (left.empty() && sku.custom) {
    sku.name = "n1";
  } else if (left == "Compute optimized") {
    sku.name = "c2";
  } else if (words.size() == 1) {
    sku.name = catalog_text::normalised(left);
  } else {
    return std::nullopt;
  }
  return sku;
}

const Accelerator* google_accelerator(std::string_view name, const Catalog& catalog) {
  // "Nvidia Tesla A100 80GB" is nvidia-a100-80gb, "Nvidia Tesla T4" nvidia-tesla-t4.
  std::string with = fmt::format("{}", fmt::join(catalog_text::words(name), "-"));
  if (const Accelerator* found = catalog.find_accelerator(with)) return found;
  constexpr std::string_view kOldBrand = "-Tesla";
  if (const std::size_t at = with.find(kOldBrand); at != std::string::npos)
    with.erase(at, kOldBrand.size());
  return catalog.find_accelerator(with);
}

std::unique_ptr<JsonPrices> google_skus(const Catalog& catalog) {
  return std::make_unique<GoogleSkus>(catalog);
}

}  // namespace reckon::price_lists
