#include <fmt/format.h>

#include "report/check/check.h"
#include "report/markup.h"

namespace reckon {
namespace {

struct Tally {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

Tally tally(const CheckedScenario& s) {
  Tally t;
  for (const auto& e : s.expectations) {
    ++t.tests;
    t.failures += e.failed();
  }
  if (has_errors(s.errors) || s.skipped || s.expectations.empty())
    ++t.tests;  // the file itself is a case
  t.errors = has_errors(s.errors);
  t.skipped = s.skipped.has_value();
  return t;
}

std::string attributes(const Tally& t) {
  return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"", t.tests,
                     t.failures, t.errors, t.skipped);
}

std::string test_case(const std::string& file, std::string_view name, const std::string& inside) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\"",
                                       markup_text(file), markup_text(name));
  return inside.empty() ? head + "/>\n" : head + ">\n      " + inside + "\n    </testcase>\n";
}

std::string suite(const CheckedScenario& s) {
  std::string out =
      fmt::format("  <testsuite name=\"{}\" {}>\n", markup_text(s.file), attributes(tally(s)));
  if (has_errors(s.errors)) {
    out +=
        test_case(s.file, "scenario",
                  fmt::format("<error message=\"{}\">{}</error>",
                              markup_text(s.errors.front().what), markup_text(format(s.errors))));
  } else if (s.skipped) {
    out += test_case(s.file, "scenario",
                     fmt::format("<skipped message=\"{}\"/>", markup_text(*s.skipped)));
  } else if (s.expectations.empty()) {
    out += test_case(s.file, "scenario", "");
  }
  for (const auto& e : s.expectations) {
    const std::string value = markup_text(value_text(e));
    const std::string drift = e.drifted() ? "; " + markup_text(drift_text(s, e)) : "";
    const std::string why =
        e.failed() ? fmt::format("<failure message=\"{}: {}\"/>", markup_text(e.result.text), value)
                   : fmt::format("<system-out>{}{}</system-out>", value, drift);
    out += test_case(s.file, e.result.text, why);
  }
  return out + "  </testsuite>\n";
}

}  // namespace

std::string check_junit(std::span<const CheckedScenario> scenarios) {
  Tally all;
  std::string suites;
  for (const CheckedScenario& s : scenarios) {
    const Tally t = tally(s);
    all.tests += t.tests;
    all.failures += t.failures;
    all.errors += t.errors;
    all.skipped += t.skipped;
    suites += suite(s);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"reckon check\" "
      "{}>\n{}</testsuites>\n",
      attributes(all), suites);
}

}  // namespace reckon
