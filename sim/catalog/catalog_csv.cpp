#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/catalog/catalog_text.h"

namespace reckon::catalog_text {
namespace {

/// Takes one row after the other off a text; counts lines, and columns in bytes.
class RowReader {
 public:
  RowReader(Texts& texts, int file, std::string_view bytes)
      : texts_(texts), file_(file), bytes_(bytes) {}

  /// False at the end. Blank lines and lines that start with '#' are passed over.
  bool next(std::vector<Cell>& row) {
    row.clear();
    while (at_ < bytes_.size() &&
           (bytes_[at_] == '\n' || bytes_[at_] == '\r' || bytes_[at_] == '#')) {
      skip_line();
    }
    if (at_ >= bytes_.size()) return false;
    do row.push_back(field());
    while (take(','));
    end_of_line();
    return true;
  }

 private:
  bool take(char c) {
    if (at_ >= bytes_.size() || bytes_[at_] != c) return false;
    ++at_;
    return true;
  }
  void end_of_line() {
    take('\r');
    if (take('\n')) start_line();
  }
  void start_line() {
    ++line_;
    line_start_ = at_;
  }
  void skip_line() {
    while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
    if (take('\n')) start_line();
  }

  Cell field() {
    Cell cell;
    cell.file = file_;
    cell.line = line_;
    cell.column = static_cast<int>(at_ - line_start_) + 1;
    if (at_ < bytes_.size() && bytes_[at_] == '"') {
      quoted(cell);
    } else {
      const std::size_t end = std::min(bytes_.find_first_of(",\n\r", at_), bytes_.size());
      cell.text = trimmed(bytes_.substr(at_, end - at_));
      at_ = end;
    }
    return cell;
  }

  void quoted(Cell& cell) {
    std::string text;
    ++at_;
    while (at_ < bytes_.size()) {
      const char c = bytes_[at_++];
      if (c == '"' && !take('"')) break;
      text += c;
      if (c == '\n') start_line();
      if (at_ == bytes_.size()) texts_.error(cell, "a quoted field has no closing quote");
    }
    cell.text = texts_.keep(std::move(text));
    const std::size_t end = std::min(bytes_.find_first_of(",\n\r", at_), bytes_.size());
    if (end != at_) {
      texts_.error(cell, "text behind the closing quote of a field",
                   "double a quote that belongs to the text: \"\"");
    }
    at_ = end;
  }

  Texts& texts_;
  int file_;
  std::string_view bytes_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

/// "0.76 [0.64 0.80]": a number and the range in which we believe it lies.
void split_range(Cell& cell) {
  const std::size_t open = cell.text.find('[');
  if (open == std::string_view::npos || cell.text.back() != ']') return;
  const auto bounds = words(cell.text.substr(open + 1, cell.text.size() - open - 2));
  if (bounds.size() != 2 || open == 0) return;  // the number's parser will say what is wrong
  cell.low = bounds[0];
  cell.high = bounds[1];
  cell.text = trimmed(cell.text.substr(0, open));
}

std::vector<std::string> names(const std::vector<std::string_view>& columns) {
  return {columns.begin(), columns.end()};
}

bool check_header(Texts& texts, const FileKind& kind, const std::vector<Cell>& header,
                  const Cell& at) {
  bool good = true;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::string_view name = header[i].text;
    if (std::ranges::find(kind.columns, name) == kind.columns.end()) {
      texts.error(
          header[i],
          fmt::format("unknown column '{}'{}", name, did_you_mean(name, names(kind.columns))),
          fmt::format("columns of {}: {}", kind.file, fmt::join(kind.columns, ", ")));
      good = false;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (header[j].text != name) continue;
      texts.error(header[i], fmt::format("column '{}' is there twice", name));
      good = false;
    }
  }
  for (const std::string_view key : kind.key) {
    if (std::ranges::find(header, key, &Cell::text) == header.end()) {
      texts.error(at, fmt::format("column '{}' is missing", key),
                  fmt::format("the columns {} tell one {} from another", fmt::join(kind.key, ", "),
                              kind.noun));
      good = false;
    }
  }
  return good;
}

void finish(const FileKind& kind, Entry& entry) {
  for (const std::string_view column : kind.key) {
    const std::string_view name = column == kind.plural ? kind.singular : column;
    const Cell* cell = entry.find(name);
    entry.key += normalised(cell ? cell->text : "");
    entry.key += '|';
    if (cell && !cell->text.empty())
      entry.name += fmt::format("{}{}", entry.name.empty() ? "" : " ", cell->text);
  }
  entry.name = fmt::format("{} '{}'", kind.noun, entry.name);
}

void give_sources(const FileKind& kind, Entry& entry, std::string_view default_source) {
  const auto given = [&](std::string_view column) {
    const Cell* cell = entry.find(column);
    return cell ? cell->text : default_source;
  };
  const std::string_view common = given("source");
  const std::string own_column =
      fmt::format("{}_source", kind.own_source_column.substr(0, kind.own_source_column.find('_')));
  for (Field& field : entry.fields) {
    const bool own = !kind.own_source_column.empty() && field.name == kind.own_source_column;
    field.cell.source = own ? given(own_column) : common;
  }
}

void add_entries(const FileKind& kind, const Entry& row, std::vector<Entry>& entries) {
  const Cell* list = kind.plural.empty() ? nullptr : row.find(kind.plural);
  if (!list) {
    entries.push_back(row);
    finish(kind, entries.back());
    return;
  }
  for (const std::string_view word : words(list->text)) {
    Entry entry = row;
    for (Field& field : entry.fields) {
      if (field.name != kind.plural) continue;
      field.name = kind.singular;
      field.cell.text = word;
    }
    finish(kind, entry);
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<Entry> read_csv(Texts& texts, const FileKind& kind, int file, std::string_view bytes,
                            std::string_view default_source) {
  RowReader reader(texts, file, bytes);
  std::vector<Entry> entries;
  std::vector<Cell> header, cells;
  Cell start;
  start.file = file;
  start.line = 1;
  if (!reader.next(header)) {
    texts.error(start, "the file is empty",
                fmt::format("its first line names columns: {}", fmt::join(kind.columns, ",")));
    return entries;
  }
  start.line = header.front().line;
  if (!check_header(texts, kind, header, start)) return entries;
  while (reader.next(cells)) {
    if (cells.size() != header.size()) {
      texts.error(cells.front(),
                  fmt::format("{} fields in a table of {} columns", cells.size(), header.size()),
                  "put a field that holds a comma into double quotes");
      continue;
    }
    Entry row;
    row.at = cells.front();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].text.empty()) continue;
      split_range(cells[i]);
      row.fields.push_back({header[i].text, cells[i]});
    }
    give_sources(kind, row, default_source);
    add_entries(kind, row, entries);
  }
  return entries;
}

}  // namespace reckon::catalog_text
