#pragma once
#include <fmt/format.h>

#include <string>

#include "report/catalog/view.h"

// Numbers of the catalog as cells: value, unit, range, source, date.
namespace reckon::catalog_rows {

using Cell = CatalogTable::Cell;
using Row = std::vector<Cell>;

inline constexpr double kGibibyte = 1073741824.0;  // bytes

inline double plain(double v) { return v; }  // in SI units, as the catalog has them
inline double plain(Seconds v) { return v.count(); }
template <class Tag>
double plain(Quantity<Tag> v) {
  return v.v;
}

inline Cell whole(int value) { return std::int64_t{value}; }
inline Cell text(std::string_view value) { return std::string(value); }
inline std::string date_of(const Catalog& catalog, SourceId id) {
  return catalog.sources.at(std::size_t(id)).retrieved;
}
inline std::string id_of(const Catalog& catalog, SourceId id) {
  return catalog.sources.at(std::size_t(id)).id;
}

/// number, value, unit, range, source, date.
class Facts {
 public:
  explicit Facts(const Catalog& catalog) : catalog_(catalog) {
    table_.columns = {"number", "value", "unit", "range", "source", "date"};
  }
  /// `scale`: how many SI units one `unit` is.
  template <class T>
  void add(std::string_view name, const Fact<T>& fact, std::string_view unit, double scale) {
    const double value = plain(fact.value) / scale;
    std::string range;
    if (fact.assumed)
      range = fmt::format("{:.4g} to {:.4g}", plain(fact.low) / scale, plain(fact.high) / scale);
    table_.rows.push_back({text(name), value, text(unit), range, id_of(catalog_, fact.source),
                           date_of(catalog_, fact.source)});
  }
  template <class T>
  void add(std::string_view name, const std::optional<Fact<T>>& fact, std::string_view unit,
           double scale) {
    if (fact) add(name, *fact, unit, scale);
  }
  CatalogTable take(std::string title) {
    table_.title = std::move(title);
    return std::move(table_);
  }

 private:
  const Catalog& catalog_;
  CatalogTable table_;
};

}  // namespace reckon::catalog_rows
