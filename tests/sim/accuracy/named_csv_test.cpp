#include "sim/accuracy/named_csv.h"

#include <catch2/catch.hpp>

#include <array>

using namespace reckon;

namespace {
constexpr std::array<std::string_view, 2> kColumns{"a", "b"};
}

TEST_CASE("columns are found by name, whatever their order and the line ends") {
  auto csv = NamedCsv::open("f.csv", "b,more,a\r\n1,2,3\n4,5,6\r7,8,9\n", kColumns);
  REQUIRE(csv);
  PublishedCounts counts;
  std::vector<std::string> seen;
  while (csv->next(counts)) seen.emplace_back(csv->text("a"));
  CHECK(seen == std::vector<std::string>{"3", "6", "9"});
  CHECK(counts.rows == 3);
  CHECK(counts.skipped.reasons.empty());
}

TEST_CASE("all missing columns are told at once, of an empty file too") {
  for (const char* text : {"c,d\n1,2\n", ""}) {
    const auto csv = NamedCsv::open("f.csv", text, kColumns);
    REQUIRE_FALSE(csv);
    CHECK(csv.error().size() == 2);
    CHECK(csv.error().front().what == "column 'a' is missing");
  }
}

TEST_CASE("rows of another length are counted, and the first twenty told with their lines") {
  std::string text = "a,b\n1,2\n";
  for (int k = 0; k < 30; ++k) text += "1\n";
  text += "3,4\n";
  auto csv = NamedCsv::open("f.csv", text, kColumns);
  REQUIRE(csv);
  PublishedCounts counts;
  int rows = 0;
  while (csv->next(counts)) ++rows;
  CHECK(rows == 2);
  CHECK(counts.rows == 32);
  CHECK(counts.skipped.count("not as many fields as columns") == 30);
  REQUIRE(counts.problems.size() == 20);
  CHECK(counts.problems.front().at.line == 3);
  CHECK(counts.problems.front().what == "row skipped: not as many fields as columns");
}
