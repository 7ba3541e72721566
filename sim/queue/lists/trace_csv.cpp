#include "sim/queue/lists/trace_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/text/printable.h"

namespace reckon {
namespace {

constexpr std::size_t kMostMistakes = 20;

template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

TraceCsv::TraceCsv(std::string file, std::string_view bytes,
                   std::span<const std::string_view> columns,
                   std::span<const std::string_view> optional, Diagnostics& problems,
                   char separator)
    : file_(std::move(file)),
      csv_(bytes, CsvReader::Comments::none, separator),
      problems_(problems) {
  if (!csv_.next(row_)) {
    report(0, 0, "the file is empty", fmt::format("its header: {}", fmt::join(columns, ",")));
    return;
  }
  width_ = row_.size();
  const auto find = [&](std::string_view name) {
    const auto found =
        std::find_if(row_.begin(), row_.end(), [&](const CsvField& f) { return f.text == name; });
    return found == row_.end() ? kAbsent : static_cast<std::size_t>(found - row_.begin());
  };
  std::vector<std::string> header;
  for (const CsvField& f : row_) header.emplace_back(f.text);
  for (const std::string_view name : columns) {
    names_.emplace_back(name);
    at_.push_back(find(name));
    if (at_.back() == kAbsent)
      report(1, 0, fmt::format("the header has no column '{}'{}", name, did_you_mean(name, header)),
             fmt::format("needed: {}", fmt::join(columns, ", ")));
  }
  for (const std::string_view name : optional) names_.emplace_back(name), at_.push_back(find(name));
}

void TraceCsv::report(int line, int column, std::string what, std::string hint) {
  if (++mistakes_ <= kMostMistakes)
    problems_.push_back({Severity::error, {file_, line, column}, std::move(what), std::move(hint)});
  else if (mistakes_ == kMostMistakes + 1)
    problems_.push_back({Severity::error, {file_, line, 0}, "more mistakes follow", ""});
}

bool TraceCsv::next() {
  if (mistakes_ > kMostMistakes || width_ == 0) return false;
  while (csv_.next(row_)) {
    for (const CsvProblem& p : csv_.problems()) report(p.line, p.column, p.what, p.hint);
    if (row_.size() == width_) return true;
    report(row_.front().line, 0,
           fmt::format("the row has {} fields, the header {}", row_.size(), width_), "");
    if (mistakes_ > kMostMistakes) return false;
  }
  return false;
}

std::string_view TraceCsv::text(std::size_t column) const {
  return at_[column] == kAbsent ? std::string_view() : row_[at_[column]].text;
}

std::optional<double> TraceCsv::number(std::size_t column, double low, double high) {
  const auto value = parsed<double>(text(column));
  if (value && std::isfinite(*value) && *value >= low && *value <= high) return value;
  if (at_[column] != kAbsent)
    error(column, fmt::format("{} is '{}', but must be a number from {} to {:g}", names_[column],
                              printable(text(column)), low, high));
  return std::nullopt;
}

std::optional<std::int64_t> TraceCsv::whole(std::size_t column, std::int64_t low,
                                            std::int64_t high) {
  auto value = parsed<std::int64_t>(text(column));
  if (!value)  // 1000.0, as tables are written that once had an empty cell
    if (const auto real = parsed<double>(text(column)); real && *real == std::rint(*real))
      if (std::abs(*real) < 0x1p53) value = static_cast<std::int64_t>(*real);
  if (value && *value >= low && *value <= high) return value;
  if (at_[column] != kAbsent)
    error(column, fmt::format("{} is '{}', but must be a whole number from {} to {}",
                              names_[column], printable(text(column)), low, high));
  return std::nullopt;
}

void TraceCsv::error(std::size_t column, std::string what, std::string hint) {
  const CsvField& field = at_[column] == kAbsent ? row_.front() : row_[at_[column]];
  report(field.line, field.column, std::move(what), std::move(hint));
}

}  // namespace reckon
