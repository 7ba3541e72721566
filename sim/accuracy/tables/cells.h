#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "sim/accuracy/named_csv.h"
#include "sim/base/unit_text.h"

// Numbers of a measured table's row.
namespace reckon {

/// The row that a NamedCsv stands at. A number that is missing or out of range is told at its field
/// and the row is skipped, once: ask for all, then ok().
class Cells {
 public:
  Cells(const NamedCsv& csv, PublishedCounts& counts) : csv_(csv), counts_(counts) {}

  std::string_view text(std::string_view column) const { return csv_.text(column); }
  bool blank(std::string_view column) const { return text(column).empty(); }
  /// More than zero and at most `most`.
  double above_zero(std::string_view column, double most = 1e18) {
    const auto value = parse_number(text(column));
    if (value && *value > 0 && *value <= most) return *value;
    wrong(column, fmt::format("{} is not a number above zero", column));
    return 1;
  }
  /// A whole number of 1 to `most`.
  int count(std::string_view column, int most = 1'000'000) {
    const auto value = parse_integer(text(column));
    if (value && *value >= 1 && *value <= most) return static_cast<int>(*value);
    wrong(column, fmt::format("{} is not a whole number of 1 to {}", column, most));
    return 1;
  }
  /// Skips the row for what stands in the column.
  void wrong(std::string_view column, const std::string& reason) {
    if (ok_) csv_.skip(counts_, reason, column);
    ok_ = false;
  }
  bool ok() const { return ok_; }

 private:
  const NamedCsv& csv_;
  PublishedCounts& counts_;
  bool ok_ = true;
};

}  // namespace reckon
