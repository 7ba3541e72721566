#include <fmt/format.h>

#include "report/check/check.h"

namespace reckon {
namespace {

/// A workflow command ends at its line, and '%' starts an escape; in a property ',' and ':'
/// separate as well.
std::string escape(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%')
      out += "%25";
    else if (c == '\r')
      out += "%0D";
    else if (c == '\n')
      out += "%0A";
    else if (property && c == ':')
      out += "%3A";
    else if (property && c == ',')
      out += "%2C";
    else
      out += c;
  }
  return out;
}

std::string annotation(const char* level, const SourcePlace& at, const std::string& message) {
  std::string out = fmt::format("::{} file=", level);
  out += escape(at.file, true);
  if (at.line > 0) out += fmt::format(",line={}", at.line);
  if (at.column > 0) out += fmt::format(",col={}", at.column);
  return out + "::" + escape(message, false) + '\n';
}

}  // namespace

std::string check_annotations(std::span<const CheckedScenario> scenarios) {
  std::string out;
  for (const CheckedScenario& s : scenarios) {
    for (const Diagnostic& d : s.errors)
      out += annotation(d.severity == Severity::error ? "error" : "warning", d.at,
                        d.hint.empty() ? d.what : d.what + "\n" + d.hint);
    for (const auto& e : s.expectations)
      if (!e.result.passed)
        out += annotation(e.failed() ? "error" : "notice", e.at,
                          fmt::format("{}: {}{}", e.result.text, value_text(e),
                                      e.failed() ? "" : "; " + drift_text(s, e)));
  }
  return out;
}

}  // namespace reckon
