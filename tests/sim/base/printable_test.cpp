#include "sim/base/text/printable.h"

#include <catch2/catch.hpp>

#include "sim/base/diagnostic.h"
#include "sim/base/text/shell_word.h"

using namespace reckon;

TEST_CASE("what does something to a terminal is printed as an escape, letters are as they are") {
  CHECK(printable("p100, Gr\u00fc\u00dfe, \u6f22\u5b57 \U0001F680") ==
        "p100, Gr\u00fc\u00dfe, \u6f22\u5b57 \U0001F680");
  CHECK(printable("\x1b[31mred") == "\\u001b[31mred");
  CHECK(printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  CHECK(printable(std::string("a\0b\x7f", 4)) == "a\\u0000b\\u007f");
  CHECK(printable("\u009b2J") == "\\u009b2J");  // CSI of one character
  CHECK(printable("user\u202egnp.exe\u2066\u200f") == "user\\u202egnp.exe\\u2066\\u200f");
  CHECK(printable("\u2028\ufeff") == "\\u2028\\ufeff");
  CHECK(printable("a\xff\xc3") == "a\\xff\\xc3");  // no UTF-8
  CHECK(printable("").empty());
}

TEST_CASE("a text of several lines keeps its lines and tabs") {
  CHECK(printable_lines("a\n\tb\r\n\x1b[2J") == "a\n\tb\\r\n\\u001b[2J");
}

TEST_CASE("a file's name that GitHub would take for a command does not begin a line") {
  CHECK(printable_file("::error::x.yaml") == "./::error::x.yaml");
  CHECK(printable_file("a\n::error::x.yaml") == "a\\n::error::x.yaml");
  CHECK(printable_file("  ::error::x.yaml") == "./  ::error::x.yaml");
  CHECK(printable_file("a.yaml") == "a.yaml");
  CHECK(printable("x ##[error]y #[0]") == "x ##\\u005berror]y #[0]");
}

TEST_CASE("UTF-8 has no overlong forms, no surrogates and nothing above its last code point") {
  CHECK(utf8_length("\xC3\xA4") == 2);
  CHECK(utf8_length("\xF0\x9F\x98\x80") == 4);
  CHECK(code_point("\xF0\x9F\x98\x80") == U'\U0001F600');
  CHECK(code_point("\u20ac") == U'\u20ac');
  for (const char* none :
       {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80", ""})
    CHECK(utf8_length(none) == 0);
}

TEST_CASE("a word of the shell is one word, on one line, without control characters") {
  CHECK(shell_word("workload.epochs=90") == "workload.epochs=90");
  CHECK(shell_word("r$(touch x)") == "'r$(touch x)'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("~") == "'~'");
  CHECK(shell_word("a\n'b\\\x1b") == "$'a\\012\\'b\\\\\\033'");
  CHECK(shell_word("\u202ex") == "$'\\342\\200\\256x'");
  CHECK(shell_file("-x.yaml") == "./-x.yaml");
  CHECK(shell_file("a b.yaml") == "'a b.yaml'");
}

TEST_CASE("a diagnostic is one line and its hints, whatever the user's names hold") {
  const Diagnostic d{.at = {"a\n::error::x.yaml", 3, 1},
                     .what = "unknown key 'a\x1b[31m\n::error::y'",
                     .hint = "first\nsecond \x1b"};
  CHECK(format(d) ==
        "a\\n::error::x.yaml:3:1: error: unknown key 'a\\u001b[31m\\n::error::y'\n"
        "    first\n    second \\u001b");
}
