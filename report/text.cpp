#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text/printable.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (cell[0] == '+' || cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9'));
}

}  // namespace

std::string engine_text(std::string_view what, std::string_view engine) {
  return engine == kNoEngine ? "no network" : fmt::format("{} {}", what, engine);
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines;
  std::string line;
  const auto limit = std::size_t(std::max(width, 1));
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > limit) {
      lines.push_back(line);
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

std::string bar(double share, int width) {
  if (!(share > 0)) return "";
  const long length = std::lround(std::min(share, 1.0) * width);
  return std::string(std::size_t(std::max(length, 1L)), '#');
}

std::string Columns::text() const {
  auto rows = rows_;  // a name must not begin a row of its own
  for (auto& row : rows)
    for (std::string& cell : row) cell = printable(cell);
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string padding(widths[c] - row[c].size(), ' ');
      line +=
          kind_ == Kind::table && c > 0 && is_number(row[c]) ? padding + row[c] : row[c] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace reckon
