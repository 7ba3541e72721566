#include "report/sweep/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/table.h"
#include "report/text.h"
#include "sim/base/text/csv.h"

namespace reckon {
namespace {

std::string why_not(const SweepRow& row, int width) {
  const auto lines =
      wrap(fmt::format("{}: {}", fmt::join(row.values, ", "), row.reason), width - 4);
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "  " : "    ") + line + '\n';
  return text;
}

std::vector<std::string> joined_cells(std::vector<std::string> cells,
                                      std::span<const std::string> others) {
  cells.insert(cells.end(), others.begin(), others.end());
  return cells;
}

}  // namespace

std::string sweep_table(const std::string& scenario, std::span<const std::string> paths,
                        std::span<const char* const> columns, std::span<const SweepRow> rows,
                        const std::string& remark, int width) {
  std::string out = scenario + "\n";
  std::vector<std::string> header;
  for (const std::string& path : paths) {
    header.push_back(fmt::format("({})", header.size() + 1));
    out += fmt::format("  {} {}\n", header.back(), path);
  }
  header.insert(header.end(), columns.begin(), columns.end());
  Columns table;
  table.row(header);
  std::string reasons;
  for (const SweepRow& row : rows) {
    const std::vector<std::string> none{"not possible, see below"};
    table.row(joined_cells(row.values, row.cells.empty() ? none : row.cells));
    if (row.cells.empty()) reasons += why_not(row, width);
  }
  out += "\n" + table.text() + remark;
  return reasons.empty() ? out : out + "\nNot possible\n" + reasons;
}

std::string sweep_csv(std::span<const std::string> paths, std::span<const char* const> columns,
                      std::span<const SweepRow> rows) {
  std::vector<std::string> header(paths.begin(), paths.end());
  header.insert(header.end(), columns.begin(), columns.end());
  header.emplace_back("reason");
  std::string out = csv_line(header);
  for (const SweepRow& row : rows) {
    std::vector<std::string> cells = joined_cells(row.values, row.cells);
    cells.resize(row.values.size() + columns.size());
    cells.push_back(row.reason);
    out += csv_line(cells);
  }
  return out;
}

}  // namespace reckon
