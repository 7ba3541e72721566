#include "report/catalog/view.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/text.h"
#include "sim/base/text/lower_case.h"

namespace reckon {
namespace {

std::string text_of(const CatalogTable::Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
  return fmt::format("{:.6g}", std::get<double>(cell));
}

bool is_text(const CatalogTable& table, std::size_t column) {
  return std::ranges::all_of(table.rows, [&](const auto& row) {
    return std::holds_alternative<std::string>(row[column]);
  });
}

std::string column_key(std::string_view column) {
  std::string key = lower_case(column);
  std::ranges::replace(key, ' ', '_');
  return key;
}

}  // namespace

std::string print_catalog_text(std::span<const CatalogTable> tables) {
  std::string out;
  for (const CatalogTable& table : tables) {
    if (table.rows.empty()) continue;
    if (!out.empty()) out += '\n';
    if (!table.title.empty()) out += table.title + '\n';
    std::vector<std::size_t> width;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      width.push_back(table.columns[c].size());
      for (const auto& row : table.rows) width[c] = std::max(width[c], text_of(row[c]).size());
    }
    const auto line = [&](auto&& cell) {
      std::string text = table.title.empty() ? "" : "  ";
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        text += is_text(table, c) ? fmt::format("{:<{}}  ", cell(c), width[c])
                                  : fmt::format("{:>{}}  ", cell(c), width[c]);
      text.erase(text.find_last_not_of(' ') + 1);
      out += text + '\n';
    };
    line([&](std::size_t c) { return table.columns[c]; });
    for (const auto& row : table.rows) line([&](std::size_t c) { return text_of(row[c]); });
  }
  return out;
}

std::string print_catalog_json(std::string_view command, std::span<const CatalogTable> tables) {
  nlohmann::ordered_json out;
  out["schema_version"] = 1;
  out["command"] = command;
  out["tables"] = nlohmann::ordered_json::array();
  for (const CatalogTable& table : tables) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) {
      nlohmann::ordered_json entry;
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        std::visit([&](const auto& value) { entry[column_key(table.columns[c])] = value; }, row[c]);
      rows.push_back(std::move(entry));
    }
    out["tables"].push_back({{"title", table.title}, {"rows", std::move(rows)}});
  }
  return out.dump(2) + "\n";
}

}  // namespace reckon
