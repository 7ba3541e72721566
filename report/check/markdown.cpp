#include <fmt/format.h>

#include "report/check/check.h"
#include "report/memo/parts.h"

namespace reckon {
namespace {

std::string outcome(const CheckedScenario& s, const CheckedExpectation& e) {
  if (e.result.passed) return "passed";
  if (e.drifted()) return markdown_safe(drift_text(s, e));
  return e.cause ? "**failed: your edit**" : "**failed**";
}

}  // namespace

std::string check_markdown(std::span<const CheckedScenario> scenarios) {
  std::string out = "### reckon check\n\n";
  bool any = false;
  for (const CheckedScenario& s : scenarios) any |= !s.expectations.empty();
  if (any) out += markdown_header({"scenario", "expectation", "value", ""});
  for (const CheckedScenario& s : scenarios)
    for (const CheckedExpectation& e : s.expectations)
      out += markdown_row({markdown_safe(s.file), markdown_safe(e.result.text),
                           markdown_safe(value_text(e)), outcome(s, e)});
  for (const CheckedScenario& s : scenarios) {
    if (has_errors(s.errors)) {
      out += fmt::format("\n**{} has errors**\n\n", markdown_safe(s.file));
      for (const Diagnostic& d : s.errors)
        out += fmt::format("- line {}: {}\n", d.at.line, markdown_safe(d.what));
    }
    if (s.since && !s.since->same)
      out += fmt::format("\n{} since {}\n\n{}", markdown_safe(s.file), markdown_safe(s.since->lock),
                         lock_change_markdown(*s.since));
  }
  return out;
}

}  // namespace reckon
