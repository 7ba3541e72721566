#pragma once
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Comma-separated values [RFC 4180]: fields in double quotes may hold commas, quotes (doubled) and
// line ends. Lines may end in LF, CR LF or CR, mixed; a byte order mark is passed over.
namespace reckon {

/// One field as written, without its quotes and the blanks around it.
struct CsvField {
  std::string_view text;
  int line = 0, column = 0;  // from 1; column in bytes
  bool owned = false;        // text belongs to the reader and lives until the next row
};

struct CsvProblem {
  int line = 0, column = 0;
  std::string what, hint;
};

/// Takes one row after the other off a text, which must outlive the reader; memory for one row.
class CsvReader {
 public:
  enum class Comments { none, hash };  // hash: lines that start with '#' are passed over
  explicit CsvReader(std::string_view bytes, Comments comments = Comments::none,
                     char separator = ',');

  /// False at the end. Blank lines are passed over.
  bool next(std::vector<CsvField>& row);
  /// What was wrong with the row that next() has read.
  std::span<const CsvProblem> problems() const { return problems_; }

 private:
  bool take(char c);
  bool end_of_line();
  void skip_line();
  CsvField field();
  void quoted(CsvField& field);
  std::size_t end_of_field() const;

  std::string_view bytes_;
  Comments comments_;
  char separator_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  std::deque<std::string> owned_;
  std::vector<CsvProblem> problems_;
};

/// A field as RFC 4180 wants it written: in quotes where it must be. An apostrophe comes before
/// text that a spreadsheet would compute: =, @, + or - with no number, a tab.
std::string csv_cell(std::string_view text);
/// A row of such fields, with its line end.
std::string csv_line(std::span<const std::string> cells);

}  // namespace reckon
