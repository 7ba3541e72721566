#pragma once
#include <optional>
#include <string>
#include <vector>

#include "report/html/page.h"
#include "report/table.h"

// The charts as Vega-Lite specifications. Colours are the style sheet's variables; widths follow
// the page.
namespace reckon::html {

/// What a chart begins with: description, width of its container, height in px.
Json chart_head(const std::string& description, int height);
/// "hours" for an axis.
std::string long_name(const TimeUnit& unit);
/// An axis of numbers.
Json number_axis(const std::string& title);

/// One row of a chart of bars: its name above the bar, its value at the right end of that line.
struct BarRow {
  std::string name, value;
  double from = 0, to = 0;  // ends of the bar, in the axis's unit
  std::string color = "var(--main)";
  std::optional<double> mark;  // a tick across the bar, in the axis's unit
};
struct BarScale {
  std::string title;                // of the axis, with its unit
  std::optional<double> low, high;  // of the axis, in its unit; nullopt: as the rows need
  std::optional<double> limit;      // a line across all rows, in that unit: dashed, or thin at 0
  bool from_zero = true;
};
Json bar_rows(const std::string& description, const std::vector<BarRow>& rows,
              const BarScale& scale);

/// How often which time or cost came out, with the 5th, 50th and 95th percentile and the limits
/// that the scenario expects. nullopt: no replication has a finite value.
struct Limit {
  double at = 0;  // s or USD
  std::string text;
  bool passed = false;
};
std::optional<Chart> time_distribution(const Forecast& forecast, const std::vector<Limit>& limits);
std::optional<Chart> cost_distribution(const Forecast& forecast, const std::vector<Limit>& limits);

/// Where the money goes, and how long nodes are paid.
std::optional<Chart> cost_parts(const Forecast& forecast);
Chart node_hours(const Forecast& forecast);
/// From all accelerator time down to goodput, cause by cause.
Chart goodput_waterfall(const Forecast& forecast);
Chart step_parts(const Forecast& forecast);
Chart memory_parts(const Forecast& forecast);

/// One replication: the job above its nodes.
Chart timeline_chart(const Plan& plan, const LifeResult& life, std::uint32_t replication);

/// What the mean answer changes by when an assumption goes from its low to its high end.
std::optional<Chart> time_effects(const Forecast& forecast);
std::optional<Chart> cost_effects(const Forecast& forecast);

}  // namespace reckon::html
