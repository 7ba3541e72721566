#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"

// Catalog files as text with places, before anything is understood: CSV rows and YAML entries both
// become an Entry, a named list of cells. Layering merges entries; entry.h gives the cells
// their types.
namespace reckon::catalog_text {

/// One value of an entry as written. A number may bring its own range and source.
struct Cell {
  std::string_view text;
  std::string_view low, high;  // empty: no range
  std::string_view source;     // id in sources.yaml; empty: none given
  int file = 0;                // index into Texts::files
  int line = 0, column = 0;
};

struct Field {
  std::string_view name;  // "memory_gib", "peak.fp16"
  Cell cell;
};

struct Entry {
  std::string key;   // what makes two entries the same one, normalised
  std::string name;  // for messages: "machine 'n1-standard-4'"
  Cell at;           // where the entry starts; its text is the entry's name
  std::vector<Field> fields;

  const Cell* find(std::string_view field) const;
};

/// Owns every byte that cells point into, and what was found wrong so far.
struct Texts {
  std::vector<std::string> files;
  std::deque<std::string> strings;
  Diagnostics problems;

  std::string_view keep(std::string text) { return strings.emplace_back(std::move(text)); }
  /// The first 200 mistakes are kept, and one that says that there are more.
  void error(const Cell& at, std::string what, std::string hint = {});
  bool full() const;
};

/// What a file of a catalog may have at most: a thousand times what ours have. What a name refers
/// to is looked for among all entries, so that more would take the square of their number.
inline constexpr std::size_t kMostEntries = 20'000;  // of a kind, in a layer
inline constexpr std::size_t kMostKeys = 1'000;      // of an entry

/// How one file of a catalog directory turns into entries.
struct FileKind {
  std::string_view file;                  // "machines.csv"
  std::string_view noun;                  // "machine", for messages
  std::vector<std::string_view> columns;  // CSV: all it may have
  std::vector<std::string_view> key;      // CSV: columns that make the key; must be there
  std::string_view plural{},
      singular{};  // CSV: the column `plural` lists several, one entry for each
  std::string_view
      own_source_column{};  // CSV: this column's numbers have a source column of their own,
                            // "<first word>_source"; empty: all use "source"
  /// CSV: a column of the key that means something where it is blank.
  struct Blank {
    std::string_view column, means;
  } blank{};
};

/// "machines.csv has more than 20000 entries".
std::string too_many(const FileKind& kind);
/// Lower case, '_' for '-': names that differ in these only are the same.
std::string normalised(std::string_view name);
/// Numbers inside names by their value: "n1-standard-8" before "n1-standard-16".
bool natural_less(std::string_view a, std::string_view b);
bool same_name(std::string_view a, std::string_view b);
/// The words of a text separated by blanks.
std::vector<std::string_view> words(std::string_view text);
std::vector<std::string> strings(std::string_view text);  // the same, each a string of its own
std::string_view trimmed(std::string_view text);

/// RFC 4180: fields in double quotes may hold commas, quotes (doubled) and line ends. The first row
/// names the columns; empty cells are not given. `default_source`: for cells of rows without one.
std::vector<Entry> read_csv(Texts& texts, const FileKind& kind, int file, std::string_view bytes,
                            std::string_view default_source);
/// A mapping of entries. Nested mappings become dotted fields, lists become lines of one text, and
/// {value:, low:, high:, source:} becomes one cell; `source` of the entry is the source of its
/// other cells.
std::vector<Entry> read_yaml(Texts& texts, const FileKind& kind, int file, const std::string& bytes,
                             std::string_view default_source);

}  // namespace reckon::catalog_text
