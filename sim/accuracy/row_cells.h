#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sim/accuracy/published_runs.h"
#include "sim/base/text/csv.h"

namespace reckon {

/// Takes the cells of one row by the names of their columns; the first mistake is kept.
class RowCells {
 public:
  static constexpr std::int64_t kMostOfAnything = std::int64_t{1} << 48;

  RowCells(const std::map<std::string, std::size_t, std::less<>>& columns,
           std::span<const CsvField> cells, TextPool& pool)
      : columns_(columns), cells_(cells), pool_(pool) {}

  std::string_view text(std::string_view column) { return pool_.keep(raw(column)); }

  /// 0: blank.
  double number(std::string_view column, double most = 1e18);

  std::int64_t whole(std::string_view column, std::int64_t most = kMostOfAnything);

  int count(std::string_view column);

  bool blank(std::string_view column) { return raw(column).empty(); }
  void fail(std::string_view column, std::string_view what);
  const std::string& reason() const { return reason_; }
  /// What stands in the cell, and what is read there.
  const std::string& found() const { return found_; }
  const CsvField& place() const { return place_; }

 private:
  std::string_view raw(std::string_view column) const;
  const std::map<std::string, std::size_t, std::less<>>& columns_;
  std::span<const CsvField> cells_;
  TextPool& pool_;
  std::string reason_, found_;
  CsvField place_;
};

}  // namespace reckon
