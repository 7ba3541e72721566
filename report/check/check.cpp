#include "report/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"
#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string_view word(const CheckedExpectation& e) {
  return e.result.passed ? "PASS" : e.drifted() ? "DRIFT" : "FAIL";
}

std::size_t widest_expectation(const CheckedScenario& s) {
  std::size_t width = 0;
  for (const auto& e : s.expectations) width = std::max(width, e.result.text.size());
  return width;
}

std::string summary(std::span<const CheckedScenario> scenarios) {
  std::size_t passed = 0, failed = 0, drifted = 0, wrong = 0, skipped = 0;
  for (const CheckedScenario& s : scenarios) {
    wrong += has_errors(s.errors);
    skipped += s.skipped.has_value();
    for (const auto& e : s.expectations)
      (e.result.passed ? passed : e.drifted() ? drifted : failed) += 1;
  }
  std::string text =
      fmt::format("{} scenario{}: {} expectation{} passed, {} failed", scenarios.size(),
                  scenarios.size() == 1 ? "" : "s", passed, passed == 1 ? "" : "s", failed);
  if (drifted > 0) text += fmt::format(", {} drifted without an edit", drifted);
  if (wrong > 0) text += fmt::format(", {} file{} with errors", wrong, wrong == 1 ? "" : "s");
  if (skipped > 0) text += fmt::format(", {} skipped", skipped);
  return text + '\n';
}

}  // namespace

bool CheckedScenario::passed() const {
  return !has_errors(errors) &&
         std::all_of(expectations.begin(), expectations.end(),
                     [](const CheckedExpectation& e) { return !e.failed(); });
}

std::string drift_text(const CheckedScenario& s, const CheckedExpectation& e) {
  return fmt::format("{}, not an edit, broke it since {}", to_text(*e.cause),
                     s.since ? printable_file(s.since->lock) : "the lock");
}

std::string value_text(const CheckedExpectation& e) {
  if (!e.result.value) return e.result.reason;
  const double value = *e.result.value;
  switch (e.expectation.metric) {
    case Metric::time:
    case Metric::step_seconds:
      return time_value(Seconds{value});
    case Metric::cost:
      return format_usd(Usd{value});
    case Metric::memory:
      return format_bytes(Bytes{value});
    case Metric::goodput:
    case Metric::step_mfu:
    case Metric::step_share:
      return format_percent(value);
    case Metric::samples_per_second:
      return format_count(value >= 1000 ? std::round(value) : value) + " samples/s";
    case Metric::tokens_per_second:
    case Metric::tokens_per_second_per_accelerator:
      return format_count(value >= 1000 ? std::round(value) : value) + " tokens/s";
    case Metric::interruptions:
      return fmt::format("{:.4g}", value);
    case Metric::latency:
    case Metric::wait:
    case Metric::jct:
    case Metric::makespan:
      return format_duration(Seconds{value});
    case Metric::serving_cost:
      return format_usd(Usd{value});
    case Metric::serving_utilization:
    case Metric::serving_rejected:
    case Metric::utilization:
    case Metric::allocation:
    case Metric::fragmentation:
    case Metric::fairness:
      return format_percent(value);
    case Metric::serving_replicas:
    case Metric::slowdown:
    case Metric::preemptions:
      return fmt::format("{:.4g}", value);
    case Metric::serving_requests_per_second:
      return format_count(value) + " requests/s";
    case Metric::energy:
      return format_energy(value);
    case Metric::co2:
      return format_mass(value);
    case Metric::feasible:
      return value != 0 ? "true" : "false";
  }
  return fmt::format("{}", value);
}

std::string check_text(std::span<const CheckedScenario> scenarios) {
  std::string out;
  for (const CheckedScenario& s : scenarios) {
    out += printable_file(s.file);
    if (s.skipped) out += ": skipped: " + *s.skipped;
    if (has_errors(s.errors))
      out += ": not simulated, the file has errors";
    else if (s.expectations.empty() && !s.skipped)
      out += ": no expect lines";
    out += '\n';
    const std::size_t width = widest_expectation(s);
    for (const auto& e : s.expectations)
      out += fmt::format("  {} {:<{}}   ({}{})\n", word(e), e.result.text, width, value_text(e),
                         e.drifted() ? "; " + drift_text(s, e)
                         : e.cause   ? "; your edit broke it"
                                     : "");
    if (s.since) out += lock_change_text(*s.since, 2);
  }
  return out + summary(scenarios);
}

}  // namespace reckon
