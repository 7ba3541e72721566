#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/forecast/forecast.h"
#include "sim/measurement/own_runs.h"

// What was forecast and what then happened, one record a line (JSON), so that forecasts can be
// scored long after:
//
//   {"record":"forecast","schema_version":1,"at":"2026-11-21T20:15:00Z","plan":"mlp, ...",...}
//   {"record":"run","schema_version":1,"at":"2026-11-21T20:20:00Z","plan":"mlp, ...",...}
namespace reckon {

inline constexpr int kHistoryVersion = 1;

struct HistoryRecord {
  /// decision: of a run that goes on, as it is or otherwise, when `reckon run --replan` looked at
  /// it.
  enum class Kind { forecast, run, decision } kind = Kind::forecast;
  std::string at;    // UTC
  std::string plan;  // plan_identity()
  /// Forecast: quantiles of time and of cost, the step. Run: all of time_seconds the same.
  /// Decision: a forecast of the whole run, under the plan under which it goes on.
  Quantiles time_seconds;
  std::optional<Quantiles> cost_usd;
  double step_seconds = 0;
  std::vector<std::string> calibrations;
  std::string directory;      // of a run, of a decision that run's
  std::optional<OwnRun> own;  // of a run on a machine that was probed
};

/// What makes two forecasts, or a forecast and a run, ones of the same: name, model, length, batch,
/// strategy, machines. Not: the catalog, prices, seed.
std::string plan_identity(const Plan& plan);
HistoryRecord record_of(const Plan& plan, const Forecast& forecast, std::string at);

/// One line, with its checksum (sim/measurement/sealed_line.h) and its newline.
std::string to_line(const HistoryRecord& record);
/// Lines that are no record of this version (torn, damaged, of another version) are passed over and
/// counted: a history is never an error.
struct History {
  std::vector<HistoryRecord> records;
  int passed_over = 0;
};
History parse_history(std::string_view text);

/// A forecast and the run that came after it: the first of its plan, of a decision in its
/// directory. A run that changed its plan once more is no answer to the decision before.
struct ScoredForecast {
  HistoryRecord forecast;
  std::optional<HistoryRecord> run;
  bool inside = false;  // the run's time lies in the forecast's p5..p95
  double error = 0;     // a share: forecast median over run, minus one
};
struct HistoryScore {
  std::vector<ScoredForecast> forecasts;  // oldest first; of equal ones the newest before a run
  int scored = 0, inside = 0;
  /// Median of |error| over those scored: all, and those that a calibration corrected.
  double median_error = 0;  // a share
  int calibrated = 0;
  double median_error_calibrated = 0;  // a share
};
HistoryScore score_history(const History& history);

}  // namespace reckon
