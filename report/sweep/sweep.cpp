#include "report/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"

namespace reckon {
namespace {

template <class Value>  // of a forecast; infinite: does not count
std::optional<std::size_t> lowest(const Sweep& sweep, Value value) {
  std::optional<std::size_t> best;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    if (!sweep.points[k].forecast) continue;
    const double v = value(*sweep.points[k].forecast);
    if (!(v < lowest)) continue;
    lowest = v;
    best = k;
  }
  return best;
}

std::string marks(const Sweep& sweep, std::size_t k) {
  std::string text;
  if (fastest(sweep) == k) text = "fastest";
  if (cheapest(sweep) == k) text += text.empty() ? "cheapest" : ", cheapest";
  return text;
}

std::string csv_number(double v) { return std::isfinite(v) ? fmt::format("{}", v) : ""; }

void csv_quantiles(std::vector<std::string>& cells, const std::optional<Quantiles>& q) {
  for (const auto member : {&Quantiles::mean, &Quantiles::p5, &Quantiles::p50, &Quantiles::p95})
    cells.push_back(q ? csv_number(*q.*member) : "");
}

std::vector<std::string> csv_cells(const Sweep& sweep, std::size_t k) {
  const Forecast& f = *sweep.points[k].forecast;
  std::vector<std::string> cells;
  csv_quantiles(cells, f.time_seconds);
  csv_quantiles(cells, f.cost_usd);
  cells.push_back(csv_number(f.goodput.mean));
  cells.push_back(csv_number(f.step.samples_per_second.v));
  cells.push_back(csv_number(f.step.step.count()));
  cells.push_back(fmt::format("{}", f.accelerators));
  cells.push_back(marks(sweep, k));
  return cells;
}

/// Rates are tokens where all points read as many; 0: samples.
std::int64_t tokens_of(const Sweep& sweep) {
  std::optional<std::int64_t> tokens;
  for (const SweepPoint& point : sweep.points) {
    if (!point.forecast) continue;
    if (tokens && (*tokens > 0) != (point.forecast->tokens_per_sample > 0)) return 0;
    tokens = point.forecast->tokens_per_sample;
  }
  return tokens.value_or(0);
}

std::vector<std::string> table_cells(const Sweep& sweep, std::size_t k) {
  const Forecast& f = *sweep.points[k].forecast;
  return {time_range(f.time_seconds), f.cost_usd ? usd_range(*f.cost_usd) : "unknown",
          fmt::format("{:.1f} %", 100 * f.goodput.p50),
          rate_value(f.step.samples_per_second, tokens_of(sweep) > 0 ? f.tokens_per_sample : 0),
          marks(sweep, k)};
}

}  // namespace

std::optional<std::size_t> fastest(const Sweep& sweep) {
  return lowest(sweep, [](const Forecast& f) { return f.time_seconds.p50; });
}

std::optional<std::size_t> cheapest(const Sweep& sweep) {
  return lowest(sweep, [](const Forecast& f) {
    return f.cost_usd ? f.cost_usd->p50 : std::numeric_limits<double>::infinity();
  });
}

std::string sweep_table(const Sweep& sweep, int width) {
  const std::array kColumns{"time", "cost", "goodput", rate_unit(tokens_of(sweep)), ""};
  const auto last = std::find_if(sweep.points.rbegin(), sweep.points.rend(),
                                 [](const SweepPoint& p) { return p.forecast.has_value(); });
  const std::string remark =
      last == sweep.points.rend()
          ? ""
          : fmt::format("  median (5th .. 95th percentile) of {} replications a point\n",
                        last->forecast->replications);
  return sweep_table(sweep.scenario, sweep.paths, kColumns,
                     rows_of(sweep, [&](std::size_t k) { return table_cells(sweep, k); }), remark,
                     width);
}

std::string sweep_json(const Sweep& sweep) {
  Json out = head("simulate");
  out["scenario"] = sweep.scenario;
  out["sweep"] = points_array(sweep, "forecast", forecast_object);
  const auto index_or_null = [](std::optional<std::size_t> k) {
    return k ? Json(*k) : Json(nullptr);
  };
  out["fastest"] = index_or_null(fastest(sweep));
  out["cheapest"] = index_or_null(cheapest(sweep));
  return dump(out, 2);
}

std::string sweep_csv(const Sweep& sweep) {
  constexpr std::array kColumns{"time_seconds_mean",
                                "time_seconds_p5",
                                "time_seconds_p50",
                                "time_seconds_p95",
                                "cost_usd_mean",
                                "cost_usd_p5",
                                "cost_usd_p50",
                                "cost_usd_p95",
                                "goodput_mean",
                                "samples_per_second",
                                "step_seconds",
                                "accelerators",
                                "best"};
  return sweep_csv(sweep.paths, kColumns,
                   rows_of(sweep, [&](std::size_t k) { return csv_cells(sweep, k); }));
}

}  // namespace reckon
