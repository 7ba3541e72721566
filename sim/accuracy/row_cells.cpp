#include "sim/accuracy/row_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

/// Columns whose numbers people write with other units.
struct Unit {
  std::string_view column, of;
};
constexpr std::array kUnits{Unit{"inter_node_gbps", "Gbit/s"},
                            Unit{"samples_per_second", "samples a second of the whole job"},
                            Unit{"batch_per_accelerator", "samples"},
                            Unit{"global_batch", "samples"},
                            Unit{"micro_batch", "samples"},
                            Unit{"sequence_length", "tokens"},
                            Unit{"params", "parameters"}};

/// For a message: a cell may be as long as a file.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...";
}

}  // namespace

double RowCells::number(std::string_view column, double most) {
  const std::string_view given = raw(column);
  if (given.empty()) return 0;
  const auto value = parse_number(given);
  if (!value) return fail(column, "is not a number"), 0.0;
  if (*value < 0 || *value > most) return fail(column, "is out of range"), 0.0;
  return *value;
}

std::int64_t RowCells::whole(std::string_view column, std::int64_t most) {
  const double value = number(column, double(most));
  if (value != std::floor(value)) return fail(column, "is not a whole number"), 0;
  return static_cast<std::int64_t>(value);
}

int RowCells::count(std::string_view column) {
  constexpr std::int64_t kMost = 1 << 22;
  return static_cast<int>(whole(column, kMost));
}

void RowCells::fail(std::string_view column, std::string_view what) {
  if (!reason_.empty()) return;
  reason_ = fmt::format("{} {}", column, what);
  const auto at = columns_.find(column);
  place_ = at == columns_.end() ? cells_.front() : cells_[at->second];
  found_ = place_.text.empty() || at == columns_.end()
               ? ""
               : fmt::format("found '{}'", shortened(place_.text));
  if (const auto unit = std::ranges::find(kUnits, column, &Unit::column); unit != kUnits.end())
    found_ += fmt::format("{}a plain number of {} is read", found_.empty() ? "" : "; ", unit->of);
}

std::string_view RowCells::raw(std::string_view column) const {
  const auto at = columns_.find(column);
  return at == columns_.end() ? std::string_view{} : cells_[at->second].text;
}

}  // namespace reckon
