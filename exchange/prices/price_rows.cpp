#include "exchange/prices/price_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/files/entry.h"
#include "sim/scenario/yaml/reader.h"

namespace reckon::price_lists {
namespace {

constexpr double kHour = 3600;

std::optional<Fact<UsdPerSecond>> price_of(const std::vector<double>& usd) {
  if (usd.empty()) return std::nullopt;
  const auto [low, high] = std::ranges::minmax(usd);
  return low == high ? hourly(low) : hourly((low + high) / 2, low, high);
}

}  // namespace

void PriceRows::add(Offering::Covers covers, const std::string& item, const std::string& region,
                    CapacityType capacity, double usd_per_hour) {
  Prices& prices = rows_[{covers, item, region}];
  (capacity == CapacityType::spot ? prices.spot : prices.on_demand).push_back(usd_per_hour);
}

std::vector<Offering> PriceRows::offerings(const Provider& provider,
                                           const std::string& date) const {
  std::vector<Offering> made;
  made.reserve(rows_.size());
  for (const auto& [key, prices] : rows_) {
    Offering offering;
    offering.provider = provider;
    offering.covers = std::get<0>(key);
    offering.item = std::get<1>(key);
    offering.region = std::get<2>(key);
    offering.on_demand = price_of(prices.on_demand);
    offering.spot = price_of(prices.spot);
    offering.date = date;
    for (const auto& [what, price] :
         {std::pair("on demand", &offering.on_demand), {"spot", &offering.spot}})
      if (*price && (*price)->assumed)
        offering.notes +=
            fmt::format("{}{}: middle of the zones", offering.notes.empty() ? "" : "; ", what);
    made.push_back(std::move(offering));
  }
  return made;
}

Fact<UsdPerSecond> hourly(double usd) { return Fact<UsdPerSecond>(UsdPerSecond{usd / kHour}); }
Fact<UsdPerSecond> hourly(double usd, double low, double high) {
  return {UsdPerSecond{usd / kHour}, UsdPerSecond{low / kHour}, UsdPerSecond{high / kHour},
          SourceId::user};
}

Offering::Covers covers_of(const Machine& machine) {
  return machine.accelerator.empty() ? Offering::Covers::machine
                                     : Offering::Covers::machine_with_accelerators;
}

bool has_columns(std::string_view bytes, std::span<const std::string_view> columns) {
  CsvReader reader(bytes.substr(0, std::min(bytes.find('\n'), bytes.size())));
  std::vector<CsvField> header;
  reader.next(header);
  return std::ranges::all_of(columns, [&](std::string_view column) {
    return std::ranges::find(header, column, &CsvField::text) != header.end();
  });
}

std::string day_of(std::string_view time) {
  constexpr std::size_t kDate = 10;
  const std::string_view day = time.substr(0, kDate);
  return parse_date(day) ? std::string(day) : std::string();
}

void Mistakes::add(SourcePlace at, std::string what, std::string hint) {
  if (full()) return;
  if (found_.size() + 1 == kMostMistakes) {
    found_.push_back({.at = {at.file}, .what = "there are more mistakes", .hint = {}});
    return;
  }
  found_.push_back({.at = std::move(at), .what = std::move(what), .hint = std::move(hint)});
}

std::string_view text_at(const YamlNode& map, std::string_view key) {
  const YamlNode::Entry* entry = map.find(key);
  return entry == nullptr || entry->value.kind != YamlNode::Kind::scalar
             ? std::string_view()
             : std::string_view(entry->value.text);
}

const YamlNode* node_at(const YamlNode& map, std::string_view key) {
  const YamlNode::Entry* entry = map.find(key);
  const bool holds = entry != nullptr && (entry->value.kind == YamlNode::Kind::map ||
                                          entry->value.kind == YamlNode::Kind::list);
  return holds ? &entry->value : nullptr;
}

std::optional<double> price_in(std::string_view text) {
  const Parsed<double> price = parse_number(text);
  const bool is_one = price && *price >= 0 && *price <= catalog_text::kDearestHour;
  return is_one ? std::optional(*price) : std::nullopt;
}

std::optional<double> price_at(const YamlNode& map, std::string_view key, Mistakes& mistakes) {
  const YamlNode::Entry* entry = map.find(key);
  if (entry == nullptr) {
    mistakes.add(map.at, fmt::format("'{}' is missing", key));
    return std::nullopt;
  }
  if (const auto price = price_in(entry->value.text)) return price;
  mistakes.add(entry->value.at, fmt::format("'{}' is {}, not a price", key, describe(entry->value)),
               "a number of USD, such as 0.526");
  return std::nullopt;
}

Provider provider_named(std::string_view name, const Catalog& catalog, const std::string& file,
                        Mistakes& mistakes) {
  if (const ProviderRules* found = catalog.find_provider(name)) return found->id;
  mistakes.add({file},
               fmt::format("the file is of the provider '{}', which the catalog lacks", name));
  return Provider{std::string(name)};
}

}  // namespace reckon::price_lists
