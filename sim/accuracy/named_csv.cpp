#include "sim/accuracy/named_csv.h"

#include <fmt/format.h>

#include "sim/base/check.h"

namespace reckon {

Expected<NamedCsv> NamedCsv::open(std::string_view file_name, std::string_view bytes,
                                  std::span<const std::string_view> columns) {
  NamedCsv csv(file_name, bytes);
  const bool any = csv.csv_.next(csv.row_);
  csv.width_ = csv.row_.size();
  for (std::size_t i = 0; i < csv.width_; ++i) csv.at_.emplace(std::string(csv.row_[i].text), i);
  Diagnostics missing;
  for (const std::string_view name : columns)
    if (!csv.at_.contains(name))
      missing.push_back({Severity::error,
                         {csv.file_, any ? 1 : 0, any ? 1 : 0},
                         fmt::format("column '{}' is missing", name),
                         fmt::format("columns: {}", fmt::join(columns, ", "))});
  if (!missing.empty()) return tl::unexpected(std::move(missing));
  return csv;
}

bool NamedCsv::next(PublishedCounts& counts) {
  while (csv_.next(row_)) {
    ++counts.rows;
    if (!csv_.problems().empty())
      skip(counts, csv_.problems().front().what);
    else if (row_.size() != width_)
      skip(counts, "not as many fields as columns");
    else
      return true;
  }
  return false;
}

std::string_view NamedCsv::text(std::string_view column) const {
  const auto at = at_.find(column);
  RECKON_CHECK(at != at_.end());
  return row_[at->second].text;
}

void NamedCsv::skip(PublishedCounts& counts, const std::string& reason) const {
  skip_at(counts, reason, row_.front());
}

void NamedCsv::skip(PublishedCounts& counts, const std::string& reason,
                    std::string_view column) const {
  const auto at = at_.find(column);
  RECKON_CHECK(at != at_.end());
  skip_at(counts, reason, row_[at->second]);
}

void NamedCsv::skip_at(PublishedCounts& counts, const std::string& reason,
                       const CsvField& field) const {
  constexpr int kTold = 20;
  if (counts.skipped.add(reason, line()) > kTold) return;
  counts.problems.push_back(
      {Severity::error, {file_, field.line, field.column}, "row skipped: " + reason, ""});
}

}  // namespace reckon
