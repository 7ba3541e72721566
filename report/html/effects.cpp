#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html/charts.h"
#include "sim/base/printed_currency.h"

namespace reckon::html {
namespace {

constexpr std::size_t kShown = 8;

struct Effect {
  std::string what;
  double value = 0;
  std::string text;
};

std::optional<Chart> effects_chart(std::vector<Effect> effects, double unit,
                                   const std::string& axis, Chart chart) {
  std::stable_sort(effects.begin(), effects.end(), [](const Effect& a, const Effect& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  if (effects.size() > kShown) effects.resize(kShown);
  std::vector<BarRow> rows;
  for (const Effect& e : effects)
    if (e.value != 0 && std::isfinite(e.value))
      rows.push_back(
          {e.what, e.text, 0, e.value / unit, e.value < 0 ? "var(--leaf)" : "var(--warm)"});
  if (rows.empty()) return std::nullopt;
  std::string description = chart.title + ": ";
  for (const BarRow& r : rows) description += r.name + " " + r.value + "; ";
  chart.spec = bar_rows(description, rows, {axis, {}, {}, 0.0});
  chart.numbers = {{"assumption", "effect"}, {}};
  for (const BarRow& r : rows) chart.numbers.rows.push_back({r.name, r.value});
  return chart;
}

constexpr const char* kNote =
    "How the mean changes over the range of one assumption, all else equal: to the left a higher "
    "value is better, to the right it is worse.";

}  // namespace

std::optional<Chart> time_effects(const Forecast& f) {
  std::vector<Effect> effects;
  double largest = 0;
  for (const AssumptionEffect& a : f.assumptions) {
    const double t = a.time_effect_seconds;
    effects.push_back({a.what, t, signed_duration(t)});
    if (std::isfinite(t)) largest = std::max(largest, std::abs(t));
  }
  const TimeUnit unit = time_unit(largest);
  return effects_chart(std::move(effects), unit.seconds,
                       "change of the mean time, " + long_name(unit),
                       {"time-effects", "What moves the time", kNote, {}, {}, {}});
}

std::optional<Chart> cost_effects(const Forecast& f) {
  std::vector<Effect> effects;
  for (const AssumptionEffect& a : f.assumptions)
    if (a.cost_effect_usd)
      effects.push_back({a.what, *a.cost_effect_usd, signed_usd(*a.cost_effect_usd)});
  constexpr double kDollar = 1;
  return effects_chart(std::move(effects), kDollar / in_printed_currency(kDollar),
                       "change of the mean cost, " + printed_currency().code,
                       {"cost-effects", "What moves the cost", kNote, {}, {}, {}});
}

}  // namespace reckon::html
