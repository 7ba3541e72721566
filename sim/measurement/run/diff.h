#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/forecast/forecast.h"
#include "sim/forecast/rates.h"
#include "sim/measurement/calibration/explaining.h"
#include "sim/measurement/measurements.h"
#include "sim/step/step_parts.h"

// A forecast and the run of the same plan, side by side: where time and money differed, and which
// of the forecast's assumptions were off.
namespace reckon {

/// What a forecast said, as `reckon simulate --format json` wrote it.
struct SaidForecast {
  std::string scenario;
  std::int64_t steps = 0;
  Quantiles time_seconds;
  Seconds step{}, communication{};
  StepParts parts;           // of the step
  StepWaits waits;           // of it; pipeline: with the way of what the bubble waits for
  bool says_update = false;  // else input and update are in `parts.other`, as the file is older
  double goodput = 0;        // mean share of the time, 0..1
  std::array<double, kBadputCauses> badput{};                 // shares of the time
  std::array<double, kInterruptionCauses> interruptions{};    // counts, means of a run
  std::optional<Quantiles> goodput_range, lost_work_seconds;  // nullopt: the file does not say
  std::optional<Quantiles> cost_usd;                          // nullopt: a price was unknown
  std::array<double, kCostParts> cost_breakdown_usd{};
  std::vector<std::pair<std::string, double>> node_hours;
  std::optional<RunRates> rates;              // nullopt: unknown, or the file is older
  std::vector<AssumptionEffect> assumptions;  // without effects where the file is older
};
/// Mistakes name the file and the key.
Expected<SaidForecast> parse_forecast(std::string_view file, std::string_view text);

/// Means: of the forecast's replications, of the run's steps; a step's parts are those of the
/// forecast's step, which has its assumptions at their medians.
struct DiffSpan {
  /// "step", "step.compute", "training", a Badput, "other", "time"; "step.median" is the run's
  /// median step, beside the mean one. Of a layout that cuts state or model "step.waits.tensor" and
  /// the like, whose "stages" is what stages hand on and wait for.
  std::string name;
  Seconds forecast{}, run{};
  /// forecast / run - 1; nullopt: the run has none of it
  std::optional<double> error() const;
};

/// A part of the bill, or all of it ("cost").
struct DiffCost {
  std::string name;  // "cost.machines", ...
  double forecast_usd = 0, run_usd = 0;
  std::optional<double> error() const;  // forecast / run - 1, as DiffSpan's
};

/// A result beside what was forecast of it.
struct DiffRange {
  Quantiles forecast;
  double run = 0;  // in the unit of `forecast`
  bool within_interval() const { return forecast.p5 <= run && run <= forecast.p95; }
};

/// One difference worth telling.
struct DiffCause {
  std::string row;        // DiffSpan's or DiffCost's name
  double difference = 0;  // run minus forecast: seconds (of a step's part: of one step), or USD
  std::string text;       // a sentence with the numbers
  std::vector<Explaining> assumptions;  // that would explain it alone, the most plausible first
};

struct RunDiff {
  std::string scenario;
  DiffRange time;                     // seconds, without `paused`
  Seconds paused{};                   // between a stop and the start that resumed the run
  std::optional<DiffRange> cost_usd;  // nullopt: a price is unknown
  std::optional<DiffRange> goodput;  // share of the time: steps that were kept, without their input
  std::optional<DiffRange> lost_work_seconds;  // of steps that were done again
  std::vector<DiffSpan> spans;
  std::vector<DiffCost> costs;     // empty: a price is unknown
  std::vector<DiffCause> causes;   // of time, the largest first, each step's parts behind training;
                                   // then of money
  bool names_assumptions = false;  // else the forecast's file does not say what rests on which
  /// The run's time and, where it has one, its cost lie in the forecast's p5..p95.
  bool within_interval() const {
    return time.within_interval() && (!cost_usd || cost_usd->within_interval());
  }
};

/// Problems: the run has no steps, is not finished, or is of another scenario or length.
Expected<RunDiff> diff_run(const SaidForecast& forecast, const Measurements& run,
                           std::string_view run_file);

}  // namespace reckon
