#include "sim/base/text/csv.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace reckon;

namespace {

std::vector<std::vector<std::string>> rows_of(std::string_view bytes) {
  CsvReader reader(bytes);
  std::vector<std::vector<std::string>> rows;
  std::vector<CsvField> fields;
  while (reader.next(fields)) {
    rows.emplace_back();
    for (const CsvField& f : fields) rows.back().emplace_back(f.text);
  }
  return rows;
}

}  // namespace

TEST_CASE("lines may end in LF, CR LF and CR in one file, behind a byte order mark") {
  const std::vector<std::vector<std::string>> expected{
      {"a", "b"}, {"1", "2"}, {"3", ""}, {"4", "5"}};
  CHECK(rows_of("\xEF\xBB\xBF"
                "a,b\n1,2\r\n3,\r\r\n\n4,5") == expected);
}

TEST_CASE("lines are counted over all line ends, also inside quotes") {
  CsvReader reader("a\r\n\"x\ny\r\nz\",b\rc\n");
  std::vector<CsvField> row;
  REQUIRE(reader.next(row));
  CHECK(row[0].line == 1);
  REQUIRE(reader.next(row));
  CHECK(row[0].text == "x\ny\r\nz");
  CHECK(row[0].line == 2);
  CHECK(row[1].line == 4);
  CHECK(row[1].column == 4);  // behind `z",`
  REQUIRE(reader.next(row));
  CHECK(row[0].line == 5);
  CHECK_FALSE(reader.next(row));
}

TEST_CASE("quotes that are not closed, and text behind one that is, are told with their place") {
  CsvReader reader("ok,\"a\"b\nx,\"open\n1,2\n");
  std::vector<CsvField> row;
  REQUIRE(reader.next(row));
  REQUIRE(reader.problems().size() == 1);
  CHECK(reader.problems()[0].what == "text behind the closing quote of a field");
  CHECK(reader.problems()[0].line == 1);
  REQUIRE(reader.next(row));
  REQUIRE(reader.problems().size() == 1);
  CHECK(reader.problems()[0].what == "a quoted field has no closing quote");
  CHECK(reader.problems()[0].line == 2);
  CHECK(reader.problems()[0].column == 3);
  CHECK_FALSE(reader.next(row));
}

TEST_CASE("no cell is a formula to a spreadsheet, numbers stay numbers") {
  CHECK(csv_cell("=1+1") == "'=1+1");
  CHECK(csv_cell("@SUM(A1:A9)") == "'@SUM(A1:A9)");
  CHECK(csv_cell("-2+3+cmd|' /C calc'!A0") == "'-2+3+cmd|' /C calc'!A0");
  CHECK(csv_cell("=HYPERLINK(\"x\",1)") == "\"'=HYPERLINK(\"\"x\"\",1)\"");
  for (const std::string number : {"-1.5", "+2e-3", "0.1", "-3"}) CHECK(csv_cell(number) == number);
}

TEST_CASE("what csv_cell writes is read back") {
  for (const std::string text : {"plain", "a,b", "say \"so\"", "two\nlines", ""})
    CHECK(rows_of(csv_cell(text) + ",end") == std::vector<std::vector<std::string>>{{text, "end"}});
}
