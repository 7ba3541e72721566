#pragma once
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "sim/base/text/shell_word.h"
#include "support/skip.h"

// Names that somebody chose to break a shell, a terminal, a parser or a page with.
namespace reckon::test {

/// Those that a scenario may have.
inline const std::vector<std::string> kHostileNames{
    "r$(touch x)",
    "r`touch x`",
    "r; touch x",
    "r | touch x & touch x",
    "r > x",
    "r'; touch x; '",
    "r\"; touch x; \"",
    "r\\",
    "r{{ .Values.x }}${x}",
    "</script><script>alert(1)</script>",
    "r]]><!--",
    "r: # yaml",
    "r%0A::error::x",
    "*",
    "~",
    "r/../../x",
    "r --help -x",
    "{a: b}",
    "!!python/object:x",
    "& *x",
    "=cmd|' /C calc'!A0",
    "r&amp;&#10;\u00e4\u6f22\U0001F680",
};

/// Those that none may have, and what is said of each.
struct RefusedName {
  std::string name, why;
};
inline const std::vector<RefusedName> kRefusedNames{
    {"--help", "begins with '-'"},
    {"-x", "begins with '-'"},
    {"../..", "begins with '.'"},
    {"::error::x", "begins with ':'"},
    {" x", "begins with ' '"},
    {"r\n::error::x", "control character"},
    {"r\rx", "control character"},
    {"r\tx", "control character"},
    {"r\x01\x07", "control character"},
    {std::string("r\0x", 3), "control character"},
    {"r\x1b[31mred", "control character"},
    {"r\u009b2J", "control character"},
    {"r\u202egnp", "control character"},
    {"r\u2028x", "control character"},
    {std::string(129, 'a'), "has 129 bytes"},
};

/// As YAML with an escape for everything, whatever our own writer thinks of it.
inline std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false);
}

/// Nothing of it does anything to a terminal: line feeds and tabs alone are below U+0020, and there
/// is none of C1, the separators and the marks of direction.
inline bool is_harmless(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) return false;
  }
  for (const char* mark : {"\u009b", "\u0085", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066",
                           "\u2069", "\u200e", "\u200f", "\ufeff"})
    if (contains(text, mark)) return false;
  return true;
}

/// Lines that GitHub takes for workflow commands: it looks behind blanks.
inline std::vector<std::string> workflow_commands(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t begin = text.find_first_not_of(" \t", at);
    if (begin < end && text.compare(begin, 2, "::") == 0)
      found.push_back(text.substr(begin, end - begin));
    at = end + 1;
  }
  return found;
}

/// Python with PyYAML reads YAML, XML and HTML for us; skipped where it is not.
inline void need_python() {
  if (std::system("python3 -c 'import yaml' 2>/dev/null") != 0)
    skip_test("python3 with yaml (python3-yaml) is not here");
}
inline nlohmann::json read_as(const Workspace& w, const std::string& kind,
                              const std::string& file) {
  const Output r = w.run_shell("python3 '" RECKON_SOURCE_DIR "/tests/support/to_json.py' " + kind +
                               " " + shell_word(file));
  INFO(r.err);
  REQUIRE(r.code == 0);
  return nlohmann::json::parse(r.out);
}

/// kScenario under another name.
inline std::string scenario_named(const std::string& name) {
  std::string text = kScenario;
  return text.replace(0, text.find('\n'), "name: " + quoted(name));
}

}  // namespace reckon::test
