#include "sim/base/text/yaml_writer.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

std::string word(YamlQuotes quotes, std::string_view text) {
  YamlWriter out(quotes);
  out.text(text);
  return out.done();
}

}  // namespace

TEST_CASE("YAML for everyone quotes what any reader takes for something else") {
  const auto of = [](std::string_view text) { return word(YamlQuotes::for_everyone, text); };
  CHECK(of("plain-word_1.x") == "plain-word_1.x\n");
  for (const char* text :
       {"yes", "No", "null", "on", "10m", "1e5", "2026-11-24", "a: b", "- a", "~"})
    CHECK(of(text) == "\"" + std::string(text) + "\"\n");
  CHECK(of("") == "\"\"\n");
}

TEST_CASE("YAML for us keeps words and numbers as they were written") {
  const auto of = [](std::string_view text) { return word(YamlQuotes::for_us, text); };
  for (const char* text : {"10 min", "1e5", "50%", "user@x", "true"})
    CHECK(of(text) == std::string(text) + "\n");
  for (const char* text : {"a: b", "a, b", "x#y", "{x}", "-5", "@x", "trail ", "null", "!x"})
    CHECK(of(text) == "\"" + std::string(text) + "\"\n");
}

TEST_CASE("no text of YAML ends its quotes or moves a terminal's cursor") {
  for (const YamlQuotes quotes : {YamlQuotes::for_us, YamlQuotes::for_everyone}) {
    CHECK(word(quotes, "a\"b\\") == "\"a\\\"b\\\\\"\n");
    CHECK(word(quotes, "\x1b[0m") == "\"\\x1b[0m\"\n");
    CHECK(word(quotes, "a\nb") == "\"a\\nb\"\n");
    CHECK(word(quotes, "a\xffz") == "\"a\\ufffdz\"\n");
  }
}

TEST_CASE("maps and lists of YAML stand an entry a line, or on one line") {
  using Style = YamlWriter::Style;
  YamlWriter out(YamlQuotes::for_everyone);
  out.begin_map();
  out.key("list");
  out.begin_list();
  for (const char* number : {"1", "2"}) {
    out.begin_map();
    out.key("a");
    out.word(number);
    out.key("b c");
    out.null();
    out.end_map();
  }
  out.end_list();
  out.key("law");
  out.tag("!exponential");
  out.begin_map(Style::flow);
  out.key("mean");
  out.text("5 min");
  out.end_map();
  out.key("lines");
  out.text("a: 1\n\n  b\n");
  out.key("none");
  out.begin_list(Style::flow);
  out.end_list();
  out.end_map();
  CHECK(out.done() ==
        "list:\n  - a: 1\n    \"b c\": ~\n  - a: 2\n    \"b c\": ~\n"
        "law: !exponential {mean: \"5 min\"}\n"
        "lines: |\n  a: 1\n\n    b\nnone: []\n");
}
