#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/calibration/measurements.h"
#include "sim/forecast/forecast.h"

// A forecast and the run of the same plan, side by side: where time differed, and which of the
// forecast's numbers were off.
namespace reckon {

/// What a forecast said, as `reckon simulate --format json` wrote it.
struct SaidForecast {
  std::string scenario;
  std::int64_t steps = 0;
  Quantiles time_seconds;
  Seconds step{}, compute{}, communication{}, exposed_communication{}, input{};
  double goodput = 0;
  std::array<double, kBadputCauses> badput{};  // shares of the time
  std::array<double, kInterruptionCauses> interruptions{};
  std::optional<Quantiles> goodput_range, lost_work_seconds;  // nullopt: the file does not say
};
/// Mistakes name the file and the key.
Expected<SaidForecast> parse_forecast(std::string_view file, std::string_view text);

struct DiffSpan {
  std::string name;  // "step", "step.compute", "training", a Badput, "time"
  Seconds forecast{}, run{};
  /// forecast / run - 1; nullopt: the run has none of it
  std::optional<double> error() const;
};

/// A result beside what was forecast of it.
struct DiffRange {
  Quantiles forecast;
  double run = 0;
  bool within_interval() const { return forecast.p5 <= run && run <= forecast.p95; }
};

struct RunDiff {
  std::string scenario;
  bool within_interval = false;  // the run's time lies in the forecast's p5..p95
  Quantiles forecast_time;
  std::optional<DiffRange> goodput;  // share of the time: steps that were kept, without their input
  std::optional<DiffRange> lost_work_seconds;  // of steps that were done again
  std::vector<DiffSpan> spans;
  std::vector<std::string> causes;  // largest effect first; sentences with the numbers
};

/// Problems: the run has no steps, is not finished, or is of another scenario or length.
Expected<RunDiff> diff_run(const SaidForecast& forecast, const Measurements& run,
                           std::string_view run_file);

}  // namespace reckon
