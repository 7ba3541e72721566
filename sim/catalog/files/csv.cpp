#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text/csv.h"
#include "sim/catalog/files/text.h"

namespace reckon::catalog_text {
namespace {

/// The next row as cells of the catalog; what is wrong with it goes to `texts`.
bool next_row(Texts& texts, int file, CsvReader& reader, std::vector<Cell>& row) {
  std::vector<CsvField> fields;
  row.clear();
  if (!reader.next(fields)) return false;
  for (const CsvField& field : fields) {
    Cell cell;
    cell.file = file;
    cell.line = field.line;
    cell.column = field.column;
    cell.text = field.owned ? texts.keep(std::string(field.text)) : field.text;
    row.push_back(cell);
  }
  for (const CsvProblem& problem : reader.problems()) {
    Cell at;
    at.file = file;
    at.line = problem.line;
    at.column = problem.column;
    texts.error(at, problem.what, problem.hint);
  }
  return true;
}

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
  // Twice as many still are some that stand there twice or are misspelt; more are another table.
  if (header.size() > 2 * kind.columns.size()) {
    texts.error(
        at,
        fmt::format("{} columns: {} has at most {}", header.size(), kind.file, kind.columns.size()),
        fmt::format("columns of {}: {}", kind.file, fmt::join(kind.columns, ", ")));
    return false;
  }
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
      texts.error(
          at, fmt::format("column '{}' is missing", key),
          fmt::format("the columns {} identify a {}", fmt::join(kind.key, ", "), kind.noun));
      good = false;
    }
  }
  return good;
}

void finish(const FileKind& kind, Entry& entry) {
  for (const std::string_view column : kind.key) {
    const std::string_view name = column == kind.plural ? kind.singular : column;
    const Cell* cell = entry.find(name);
    const bool blank = !cell || cell->text.empty();
    const std::string_view unsaid = column == kind.blank.column ? kind.blank.means : "";
    entry.key += normalised(blank ? unsaid : cell->text);
    entry.key += '|';
    if (!blank) entry.name += fmt::format("{}{}", entry.name.empty() ? "" : " ", cell->text);
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
  CsvReader reader(bytes, CsvReader::Comments::hash);
  std::vector<Entry> entries;
  std::vector<Cell> header, cells;
  Cell start;
  start.file = file;
  start.line = 1;
  if (!next_row(texts, file, reader, header)) {
    texts.error(start, "the file is empty",
                fmt::format("its first line names columns: {}", fmt::join(kind.columns, ",")));
    return entries;
  }
  start.line = header.front().line;
  if (!check_header(texts, kind, header, start)) return entries;
  while (!texts.full() && next_row(texts, file, reader, cells)) {
    if (entries.size() > kMostEntries) {
      texts.error(cells.front(), too_many(kind));
      break;
    }
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
