#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/accuracy/published_runs.h"
#include "sim/base/text/csv.h"

// Published tables whose columns are found by the names in their header.
namespace reckon {

class NamedCsv {
 public:
  /// `bytes` outlive it. Errors: every one of `columns` that the header lacks.
  static Expected<NamedCsv> open(std::string_view file_name, std::string_view bytes,
                                 std::span<const std::string_view> columns);

  /// The next row that has as many fields as the header; others are skipped. Counts in `counts`.
  bool next(PublishedCounts& counts);
  /// Of a column that was asked for in open().
  std::string_view text(std::string_view column) const;
  /// Does the header have the column? text() of one that was not asked for in open() needs it.
  bool has(std::string_view column) const { return at_.contains(column); }
  int line() const { return row_.front().line; }
  /// Counts this row under the reason and tells of it with its line, the first 20 times.
  void skip(PublishedCounts& counts, const std::string& reason) const;
  /// The same, told at the row's field of the column, which the header has.
  void skip(PublishedCounts& counts, const std::string& reason, std::string_view column) const;

 private:
  NamedCsv(std::string_view file_name, std::string_view bytes) : file_(file_name), csv_(bytes) {}
  void skip_at(PublishedCounts& counts, const std::string& reason, const CsvField& field) const;

  std::string file_;
  CsvReader csv_;
  std::vector<CsvField> row_;
  std::map<std::string, std::size_t, std::less<>> at_;
  std::size_t width_ = 0;
};

}  // namespace reckon
