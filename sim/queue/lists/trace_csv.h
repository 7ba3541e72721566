#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/text/csv.h"

// Rows of a trace with columns found by name, and mistakes with the place of the field.
namespace reckon {

class TraceCsv {
 public:
  /// `bytes` outlive it. Reports each of `columns` that the header lacks; of `optional` ones text()
  /// is "" then. At most 20 mistakes are told one by one.
  TraceCsv(std::string file, std::string_view bytes, std::span<const std::string_view> columns,
           std::span<const std::string_view> optional, Diagnostics& problems, char separator = ',');

  /// The next row with as many fields as the header; others are mistakes. False at the end.
  bool next();
  /// Columns count through `columns`, then `optional`.
  std::string_view text(std::size_t column) const;
  /// A number from `low` to `high`, or a mistake.
  std::optional<double> number(std::size_t column, double low, double high);
  std::optional<std::int64_t> whole(std::size_t column, std::int64_t low, std::int64_t high);
  void error(std::size_t column, std::string what, std::string hint = "");
  int line() const { return row_.empty() ? 0 : row_.front().line; }

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  void report(int line, int column, std::string what, std::string hint);

  std::string file_;
  CsvReader csv_;
  Diagnostics& problems_;
  std::vector<CsvField> row_;
  std::vector<std::string> names_;
  std::vector<std::size_t> at_;  // by column: field of the row
  std::size_t width_ = 0;
  std::size_t mistakes_ = 0;
};

}  // namespace reckon
