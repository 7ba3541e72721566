#include "planner/lock/locked_rows.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "planner/lock/run_fields.h"

namespace reckon::planner {
namespace {

// As the catalog's reader turns a price into one of a second.
constexpr double kHour = 1.0 / 3600;

void set_price(const std::optional<Fact<UsdPerSecond>>& price, std::optional<double>& hour,
               std::optional<double>& second) {
  if (!price) return;
  constexpr double kDigits = 1e9;
  const double rounded = std::round(price->value.v * 3600 * kDigits) / kDigits;
  (rounded * kHour == price->value.v ? hour : second) =
      rounded * kHour == price->value.v ? rounded : price->value.v;
}

std::optional<Fact<UsdPerSecond>> price_of(std::optional<double> hour, std::optional<double> second,
                                           SourceId source) {
  if (hour) return Fact<UsdPerSecond>(UsdPerSecond{*hour * kHour}, source);
  if (second) return Fact<UsdPerSecond>(UsdPerSecond{*second}, source);
  return std::nullopt;
}

constexpr const char* kStorage = "storage";

SourceId source_named(Catalog& catalog, const std::string& id) {
  const auto found = std::ranges::find(catalog.sources, id, &Source::id);
  const auto at = std::size_t(found - catalog.sources.begin());
  if (found == catalog.sources.end()) catalog.sources.push_back({id, "", ""});
  return static_cast<SourceId>(at);
}

// Fields of a run as text: "" says nothing.
std::string cell_of(std::string_view text) { return std::string(text); }
std::string cell_of(bool value) { return value ? "true" : "false"; }
template <class Number>
requires std::is_arithmetic_v<Number> std::string cell_of(Number value) {
  return value == Number{} ? "" : fmt::format("{}", value);
}
std::string cell_of(BytesPerSecond rate) { return fmt::format("{}", rate.v); }
template <class T>
std::string cell_of(const std::optional<T>& value) {
  if (!value) return "";
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return fmt::format("{}", *value);  // 0 says something
  else
    return cell_of(*value);
}

void read_cell(const std::string& text, std::string_view& value, TextPool& pool) {
  value = pool.keep(text);
}
void read_cell(const std::string& text, bool& value, TextPool&) { value = text == "true"; }
template <class Number>
requires std::is_arithmetic_v<Number>
void read_cell(const std::string& text, Number& value, TextPool&) {
  std::from_chars(text.data(), text.data() + text.size(), value);  // else it says nothing
}
void read_cell(const std::string& text, BytesPerSecond& rate, TextPool& pool) {
  read_cell(text, rate.v, pool);
}
template <class T>
void read_cell(const std::string& text, std::optional<T>& value, TextPool& pool) {
  read_cell(text, value.emplace(), pool);
}

std::map<std::string, std::string> fields_of(const RunConfiguration& run) {
  std::map<std::string, std::string> fields;
  each_field(run, [&](const char* name, const auto& field) {
    if (std::string text = cell_of(field); !text.empty()) fields[name] = std::move(text);
  });
  return fields;
}

constexpr std::size_t kNameDigits = 8;

}  // namespace

std::vector<LockedPrice> locked_prices(const Catalog& catalog, const std::set<std::string>& of) {
  std::vector<LockedPrice> rows;
  for (const Offering& o : catalog.offerings) {
    if (!of.contains(o.provider.name)) continue;
    LockedPrice row{
        .provider = o.provider.name,
        .region = o.region,
        .zones = o.zones,
        .covers = o.covers == Offering::Covers::storage ? kStorage : std::string(to_text(o.covers)),
        .item = o.item,
        .count = o.count,
        .date = o.date,
        .suspect = o.suspect,
        .layer = o.layer};
    set_price(o.on_demand, row.on_demand_usd_per_hour, row.on_demand_usd_per_second);
    set_price(o.spot, row.spot_usd_per_hour, row.spot_usd_per_second);
    const SourceId source = o.on_demand ? o.on_demand->source
                            : o.spot    ? o.spot->source
                                        : SourceId::user;
    row.source = catalog.sources.at(std::size_t(source)).id;
    rows.push_back(std::move(row));
  }
  return rows;
}

void set_prices(Catalog& catalog, std::span<const LockedPrice> prices) {
  std::set<std::string> providers;
  for (const LockedPrice& row : prices) providers.insert(row.provider);
  std::erase_if(catalog.offerings,
                [&](const Offering& o) { return providers.contains(o.provider.name); });
  for (const LockedPrice& row : prices) {
    const ProviderRules* provider = catalog.find_provider(row.provider);
    if (provider == nullptr) continue;  // nothing can be planned on it any more
    const SourceId source = source_named(catalog, row.source);
    Offering o;
    o.provider = provider->id;
    o.region = row.region;
    o.zones = row.zones;
    o.item = row.item;
    o.covers = row.covers == kStorage
                   ? Offering::Covers::storage
                   : from_text<Offering::Covers>(row.covers).value_or(Offering::Covers::machine);
    o.count = row.count;
    o.on_demand = price_of(row.on_demand_usd_per_hour, row.on_demand_usd_per_second, source);
    o.spot = price_of(row.spot_usd_per_hour, row.spot_usd_per_second, source);
    o.date = row.date;
    o.suspect = row.suspect;
    o.layer = row.layer;
    catalog.offerings.push_back(std::move(o));
  }
}

std::string name_of(const PublishedRun& run) {
  std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", run.id, run.source, run.trust,
                                 run.measured.v, run.peak_memory.v, run.peak_is_of_device);
  for (const auto& [name, value] : fields_of(run.run)) text += name + "=" + value + "\n";
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())).substr(0, kNameDigits);
}

LockedRun locked(const PublishedRun& run) {
  return {std::string(run.id), std::string(run.source), std::string(1, run.trust), run.measured.v,
          run.peak_memory.v,   run.peak_is_of_device,   fields_of(run.run)};
}

std::vector<LockedSource> locked_sources(std::span<const PublishedRun> runs) {
  std::map<std::string, std::vector<std::string>, std::less<>> names;
  for (const PublishedRun& run : runs) names[std::string(run.source)].push_back(name_of(run));
  std::vector<LockedSource> sources;
  for (auto& [source, of] : names) {
    std::sort(of.begin(), of.end());
    std::string text;
    for (const std::string& name : of) text += name;
    sources.push_back({source, std::move(text)});
  }
  return sources;
}

RestoredRuns restored_runs(std::span<const PublishedRun> today,
                           std::span<const LockedSource> evidence, std::span<const LockedRun> used,
                           TextPool& pool) {
  std::map<std::string, std::multiset<std::string>> then;  // by source
  std::size_t left = 0;
  for (const LockedSource& source : evidence)
    for (std::size_t at = 0; at + kNameDigits <= source.runs.size(); at += kNameDigits, ++left)
      then[source.source].insert(source.runs.substr(at, kNameDigits));
  const auto take = [&](const std::string& source, const std::string& name) {
    auto& names = then[source];
    const auto found = names.find(name);
    if (found == names.end()) return false;
    names.erase(found);
    --left;
    return true;
  };
  RestoredRuns out;
  for (const PublishedRun& run : today)
    if (take(std::string(run.source), name_of(run))) out.runs.push_back(run);
  for (const LockedRun& row : used) {
    PublishedRun run;
    run.id = pool.keep(row.id);
    run.source = pool.keep(row.source);
    run.trust = row.trust.empty() ? 'C' : row.trust.front();
    run.measured = SamplesPerSecond{row.samples_per_second};
    run.peak_memory = Bytes{row.peak_memory_bytes};
    run.peak_is_of_device = row.peak_is_of_device;
    each_field(run.run, [&](const char* name, auto& field) {
      if (const auto found = row.run.find(name); found != row.run.end())
        read_cell(found->second, field, pool);
    });
    if (take(row.source, name_of(run))) out.runs.push_back(run);
  }
  out.lost = left;
  return out;
}

}  // namespace reckon::planner
