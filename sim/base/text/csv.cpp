#include "sim/base/text/csv.h"

#include <algorithm>

namespace reckon {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view without_blanks(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

CsvReader::CsvReader(std::string_view bytes, Comments comments, char separator)
    : bytes_(bytes), comments_(comments), separator_(separator) {
  if (bytes_.starts_with(kByteOrderMark)) at_ = line_start_ = kByteOrderMark.size();
}

bool CsvReader::next(std::vector<CsvField>& row) {
  row.clear();
  problems_.clear();
  owned_.clear();
  while (at_ < bytes_.size()) {
    if (comments_ == Comments::hash && bytes_[at_] == '#')
      skip_line();
    else if (!end_of_line())
      break;
  }
  if (at_ >= bytes_.size()) return false;
  do row.push_back(field());
  while (take(separator_));
  end_of_line();
  return true;
}

bool CsvReader::take(char c) {
  if (at_ >= bytes_.size() || bytes_[at_] != c) return false;
  ++at_;
  return true;
}

bool CsvReader::end_of_line() {
  const bool carriage_return = take('\r');
  const bool line_feed = take('\n');
  if (!carriage_return && !line_feed) return false;
  ++line_;
  line_start_ = at_;
  return true;
}

void CsvReader::skip_line() {
  at_ = std::min(bytes_.find_first_of("\r\n", at_), bytes_.size());
  end_of_line();
}

std::size_t CsvReader::end_of_field() const {
  const char ends[] = {separator_, '\n', '\r'};
  return std::min(bytes_.find_first_of(ends, at_, sizeof ends), bytes_.size());
}

CsvField CsvReader::field() {
  CsvField field;
  field.line = line_;
  field.column = static_cast<int>(at_ - line_start_) + 1;
  if (at_ < bytes_.size() && bytes_[at_] == '"') {
    quoted(field);
  } else {
    const std::size_t end = end_of_field();
    field.text = without_blanks(bytes_.substr(at_, end - at_));
    at_ = end;
  }
  return field;
}

void CsvReader::quoted(CsvField& field) {
  std::string& text = owned_.emplace_back();
  bool closed = false;
  ++at_;
  while (at_ < bytes_.size()) {
    const std::size_t before = at_;
    if (end_of_line()) {
      text += bytes_.substr(before, at_ - before);
      continue;
    }
    const char c = bytes_[at_++];
    if (c == '"' && !take('"')) {
      closed = true;
      break;
    }
    text += c;
  }
  if (!closed)
    problems_.push_back({field.line, field.column, "a quoted field has no closing quote", ""});
  field.text = text;
  field.owned = true;
  const std::size_t end = end_of_field();
  if (end != at_) {
    problems_.push_back({field.line, field.column, "text behind the closing quote of a field",
                         "double a quote that belongs to the text: \"\""});
  }
  at_ = end;
}

namespace {

/// Whether a spreadsheet takes the text for a formula, which may start programs and send cells
/// away (OWASP, "CSV Injection"); a number with a sign is none.
bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@\t").find(text.front()) == std::string_view::npos)
    return false;
  const std::string_view number = text.substr(1);
  return text.front() == '=' || text.front() == '@' || number.empty() ||
         number.find_first_not_of("0123456789.eE+-") != std::string_view::npos;
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (is_formula(text)) return csv_cell("'" + std::string(text));
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_line(std::span<const std::string> cells) {
  std::string line;
  for (std::size_t k = 0; k < cells.size(); ++k) line += (k == 0 ? "" : ",") + csv_cell(cells[k]);
  return line + "\n";
}

}  // namespace reckon
