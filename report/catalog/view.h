#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/catalog/catalog.h"

// What the catalog holds, for people and for programs: every number with its unit, range, source
// and date.
namespace reckon {

/// Rows under named columns. Text columns are printed to the left, numbers to the right.
struct CatalogTable {
  using Cell = std::variant<std::string, double, std::int64_t>;  // numbers: unit in column or row
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

/// "accelerators", "machines", ... as `reckon catalog list` takes them.
std::vector<std::string> catalog_kinds();
/// All entries of a kind in which each of `words` occurs somewhere, whatever its case. nullopt: no
/// such kind.
std::optional<CatalogTable> list_catalog(const Catalog& catalog, std::string_view kind,
                                         std::span<const std::string> words);
/// Everything about a name: of an accelerator, machine (a custom one too), slice, data set,
/// storage, link, scale tier, group of names, operational number or group, or source. Empty:
/// nothing has that name.
std::vector<CatalogTable> show_catalog(const Catalog& catalog, std::string_view name);
/// Names that `show` knows, for "did you mean".
std::vector<std::string> catalog_names(const Catalog& catalog);

std::string print_catalog_text(std::span<const CatalogTable> tables);
std::string print_catalog_json(std::string_view command, std::span<const CatalogTable> tables);

}  // namespace reckon
