#include "report/text.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("text is broken at spaces and a longer word keeps a line of its own") {
  CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("a extraordinarily b", 5) == std::vector<std::string>{"a", "extraordinarily", "b"});
  CHECK(wrap("", 10).empty());
}

TEST_CASE("a bar shows anything at all and never more than the whole") {
  CHECK(bar(0, 10) == "");
  CHECK(bar(0.001, 10) == "#");
  CHECK(bar(0.5, 10) == "#####");
  CHECK(bar(1.7, 10) == "##########");
}

TEST_CASE("columns align: words to the left, numbers to the right, no trailing spaces") {
  Columns c;
  c.row({"a", "1.5 s", "x"});
  c.row({"long", "12.5 s", ""});
  CHECK(c.text() == "  a      1.5 s  x\n  long  12.5 s\n");
}

TEST_CASE("a cell is part of one line, whatever it holds") {
  Columns c;
  c.row({"a\n::error::b", "\x1b[31m"});
  CHECK(c.text() == "  a\\n::error::b  \\u001b[31m\n");
}
