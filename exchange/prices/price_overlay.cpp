#include "exchange/prices/price_overlay.h"

#include <fmt/format.h>

#include <tuple>

#include "exchange/prices/price_rows.h"
#include "sim/base/text/csv.h"
#include "sim/scenario/yaml/document.h"

namespace reckon {
namespace {

constexpr double kSecondsOfHour = 3600;
constexpr double kSecondsOfMonth = 730 * kSecondsOfHour;  // as clouds bill, and the catalog reads

/// "1.2 [1 1.5]" for so many seconds.
std::string priced(const std::optional<Fact<UsdPerSecond>>& rate, double seconds) {
  if (!rate) return "";
  const auto number = [&](UsdPerSecond v) { return fmt::format("{:.9g}", v.v * seconds); };
  if (!rate->assumed) return number(rate->value);
  return fmt::format("{} [{} {}]", number(rate->value), number(rate->low), number(rate->high));
}

struct PriceRow {
  Offering offering;
  std::string source, spot_source;
};
using RowKey = std::tuple<Provider, std::string, std::vector<std::string>, std::string,
                          Offering::Covers, int, std::string>;

std::map<RowKey, PriceRow> rows_of(std::span<const SourcedPrices> sourced) {
  std::map<RowKey, PriceRow> rows;
  for (const SourcedPrices& each : sourced) {
    for (const Offering& o : each.prices) {
      const RowKey key{o.provider, o.region, o.zones, o.item, o.covers, o.count, o.date};
      const auto [at, fresh] = rows.try_emplace(key, PriceRow{o, each.source.id, each.source.id});
      if (fresh) continue;
      PriceRow& row = at->second;
      if (o.on_demand) {
        row.offering.on_demand = o.on_demand;
        row.source = each.source.id;
      }
      if (o.spot) {
        row.offering.spot = o.spot;
        row.spot_source = each.source.id;
      }
      if (!o.notes.empty() && row.offering.notes != o.notes)
        row.offering.notes += (row.offering.notes.empty() ? "" : "; ") + o.notes;
    }
  }
  return rows;
}

std::string sources_yaml(std::span<const SourcedPrices> sourced) {
  YamlNode root;
  root.kind = YamlNode::Kind::map;
  std::map<std::string, Source> sources;
  for (const SourcedPrices& each : sourced) {
    const auto [at, fresh] = sources.try_emplace(each.source.id, each.source);
    if (!fresh && at->second.reference != each.source.reference)
      at->second.reference += "; " + each.source.reference;
  }
  for (const auto& [id, source] : sources) {
    YamlNode entry;
    entry.kind = YamlNode::Kind::map;
    for (const auto& [key, text] :
         {std::pair("reference", source.reference), {"retrieved", source.retrieved}}) {
      YamlNode value;
      value.kind = YamlNode::Kind::scalar;
      value.text = text;
      entry.entries.push_back({key, {}, std::move(value)});
    }
    root.entries.push_back({id, {}, std::move(entry)});
  }
  return write_yaml(root);
}

}  // namespace

std::map<std::string, std::string> price_overlay(std::span<const SourcedPrices> sourced) {
  std::string prices, storages;
  for (const auto& [key, row] : rows_of(sourced)) {
    const Offering& o = row.offering;
    if (o.covers == Offering::Covers::storage) {
      storages += csv_line(std::vector<std::string>{o.provider.name, o.region, o.item,
                                                    priced(o.on_demand, kSecondsOfMonth), o.date,
                                                    row.source, o.notes});
      continue;
    }
    std::string notes = o.notes;
    if (o.spot && row.source != row.spot_source)
      notes += fmt::format("{}spot: {}", notes.empty() ? "" : "; ", row.spot_source);
    prices += csv_line(std::vector<std::string>{
        o.provider.name, o.region, fmt::format("{}", fmt::join(o.zones, " ")), o.item,
        std::string(to_text(o.covers)), fmt::format("{}", o.count),
        priced(o.on_demand, kSecondsOfHour), priced(o.spot, kSecondsOfHour), o.date, row.source,
        notes});
  }
  std::map<std::string, std::string> files{{"sources.yaml", sources_yaml(sourced)}};
  if (!prices.empty())
    files["prices.csv"] =
        "provider,region,zones,item,covers,count,on_demand_usd_per_hour,spot_usd_per_hour,date,"
        "source,notes\n" +
        prices;
  if (!storages.empty())
    files["storage_prices.csv"] =
        "provider,region,storage,usd_per_gb_month,date,source,notes\n" + storages;
  for (const SourcedPrices& each : sourced)
    for (const auto& [name, text] : each.files) {
      std::string& file = files[name];
      if (file.empty()) file = price_lists::header_of_machines(name);
      file += text;
    }
  return files;
}

}  // namespace reckon
