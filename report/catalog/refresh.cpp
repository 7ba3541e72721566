#include "report/catalog/refresh.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reckon {
namespace {

constexpr double kHourSeconds = 3600;

CatalogTable::Cell usd_cell(const std::optional<Fact<UsdPerSecond>>& rate,
                            UsdPerSecond Fact<UsdPerSecond>::*part) {
  if (!rate) return std::string();
  return ((*rate).*part).v * kHourSeconds;
}

/// The first `most` rows, and how many there are; a title for programs where all are there.
std::string counted_of_all(std::string_view what, std::size_t all, std::size_t most) {
  if (most == kAllRows) return std::string(what);
  return all <= most ? fmt::format("{}: {}", what, all)
                     : fmt::format("{}: {}, the first {} (--format json has all)", what, all, most);
}

CatalogTable changes_table(std::string_view what, std::span<const PriceChange> changes,
                           std::size_t most) {
  CatalogTable table{counted_of_all(what, changes.size(), most),
                     {"provider", "item", "covers", "region", "buy", "before USD/h", "of",
                      "now USD/h", "low", "high", "change"},
                     {}};
  for (const PriceChange& c : changes.first(std::min(most, changes.size()))) {
    const auto relative = c.relative();
    const bool range = c.now && c.now->assumed;
    table.rows.push_back({c.provider.name, c.item, std::string(to_text(c.covers)), c.region,
                          std::string(to_text(c.capacity)),
                          usd_cell(c.before, &Fact<UsdPerSecond>::value), c.before_date,
                          usd_cell(c.now, &Fact<UsdPerSecond>::value),
                          range ? usd_cell(c.now, &Fact<UsdPerSecond>::low) : std::string(),
                          range ? usd_cell(c.now, &Fact<UsdPerSecond>::high) : std::string(),
                          relative ? fmt::format("{:+.1f} %", *relative * 100) : std::string()});
  }
  return table;
}

/// Without the columns in which nothing stands.
CatalogTable without_empty_columns(CatalogTable table) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    const bool empty = std::ranges::all_of(table.rows, [&](const auto& row) {
      const auto* text = std::get_if<std::string>(&row[c]);
      return text != nullptr && text->empty();
    });
    if (!empty) continue;
    table.columns.erase(table.columns.begin() + std::ptrdiff_t(c));
    for (auto& row : table.rows) row.erase(row.begin() + std::ptrdiff_t(c));
  }
  return table;
}

}  // namespace

std::vector<CatalogTable> refresh_tables(std::span<const PriceExport> exports,
                                         const PriceChanges& changes, std::size_t most) {
  CatalogTable lists{"price lists",
                     {"provider", "date", "prices", "unknown machines", "other lines", "source"},
                     {}};
  std::map<std::string, std::int64_t> unknown;
  for (const PriceExport& each : exports) {
    for (const auto& [name, lines] : each.unknown) unknown[name] += lines;
    lists.rows.push_back(
        {each.provider.name, each.source.retrieved, static_cast<std::int64_t>(each.prices.size()),
         static_cast<std::int64_t>(each.unknown.size()), each.passed_over, each.source.reference});
  }
  CatalogTable summary{"prices", {"changed", "new", "gone", "the same"}, {}};
  summary.rows.push_back({static_cast<std::int64_t>(changes.changed.size()),
                          static_cast<std::int64_t>(changes.added.size()),
                          static_cast<std::int64_t>(changes.gone.size()), changes.same});
  CatalogTable names{
      counted_of_all("not in the catalog", unknown.size(), most), {"name", "lines"}, {}};
  std::vector<std::pair<std::string, std::int64_t>> by_lines(unknown.begin(), unknown.end());
  std::ranges::stable_sort(by_lines, std::greater<>(),
                           &std::pair<std::string, std::int64_t>::second);
  for (const auto& [name, lines] : std::span(by_lines).first(std::min(most, by_lines.size())))
    names.rows.push_back({name, lines});
  return {lists,
          summary,
          without_empty_columns(changes_table("changed", changes.changed, most)),
          without_empty_columns(changes_table("new", changes.added, most)),
          without_empty_columns(changes_table("gone", changes.gone, most)),
          names};
}

}  // namespace reckon
