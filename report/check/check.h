#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/check/lock_change.h"
#include "sim/base/diagnostic.h"
#include "sim/forecast/forecast.h"

// What `reckon check` found, and how each reader wants it.
namespace reckon {

struct CheckedExpectation {
  Expectation expectation;
  ExpectationResult result;
  SourcePlace at;
  /// It fails and held when the lock was written: what broke it. nullopt: no lock says.
  std::optional<planner::Cause> cause;

  /// It fails by nothing that the scenario's author has changed: told, but no failure.
  bool drifted() const { return !result.passed && cause && *cause != planner::Cause::edit; }
  bool failed() const { return !result.passed && !drifted(); }
};

struct CheckedScenario {
  std::string file;
  std::optional<std::string> skipped;  // why it was not checked
  Diagnostics errors;                  // the file itself is wrong: nothing was simulated
  std::vector<CheckedExpectation> expectations;
  std::optional<LockChange> since = {};  // the lock beside it; nullopt: there is none

  bool passed() const;
};

/// "PASS p95(time) <= 48h   (41 h 12 min)" below each file, and a last line that counts.
std::string check_text(std::span<const CheckedScenario> scenarios);

/// A test suite for each file, a test case for each expectation with its value; a wrong file is one
/// case with an error.
std::string check_junit(std::span<const CheckedScenario> scenarios);

/// `::error file=...,line=...,col=...::message` for each failed expectation and each error, which
/// GitHub shows at its line. Escapes:
/// https://docs.github.com/actions/reference/workflow-commands-for-github-actions and
/// actions/toolkit's command.ts.
std::string check_annotations(std::span<const CheckedScenario> scenarios);

/// For a job's summary or a comment: a table of expectations, errors, and what changed since locks.
std::string check_markdown(std::span<const CheckedScenario> scenarios);

/// SARIF 2.1.0 (OASIS, 27 March 2020): a result for each failed expectation and each error, at its
/// line, with the path as it was given. Code scanning shows them beside the line.
std::string check_sarif(std::span<const CheckedScenario> scenarios, std::string_view version);

/// "prices, not an edit, broke it since a.lock.json": of one that drifted.
std::string drift_text(const CheckedScenario& scenario, const CheckedExpectation& expectation);

/// The measured value in the unit of its metric, or why there is none.
std::string value_text(const CheckedExpectation& expectation);

}  // namespace reckon
