#include "report/serving/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/serving/json.h"
#include "report/text.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

bool holds_goal(const ServingSweep& sweep, const ServingForecast& f) {
  return !sweep.goal || (f.refused_share == 0 && evaluate(*sweep.goal, f).passed);
}

std::vector<std::string> serving_cells(const ServingSweep& sweep, std::size_t k) {
  const ServingForecast& f = *sweep.points[k].forecast;
  const bool timed = f.service.latency.count() > 0;
  const auto latency = [&](Seconds t) { return timed ? format_duration(t) : std::string("-"); };
  std::string mark = cheapest(sweep) == k ? "cheapest" : "";
  if (sweep.goal && !holds_goal(sweep, f)) mark = "misses the goal";
  return {latency(f.p50),
          latency(f.p95),
          latency(f.p99),
          fmt::format("{:.1f}", f.replicas),
          format_percent(f.service.utilization()),
          format_percent(f.refused_share),
          f.cost_usd ? format_usd(Usd{*f.cost_usd}) : "unknown",
          mark};
}

std::vector<std::string> serving_csv_cells(const ServingSweep& sweep, std::size_t k) {
  const ServingForecast& f = *sweep.points[k].forecast;
  const auto number = [](double v) { return fmt::format("{}", v); };
  const bool timed = f.service.latency.count() > 0;
  const auto latency = [&](Seconds t) { return timed ? number(t.count()) : ""; };
  return {latency(f.p50),
          latency(f.p95),
          latency(f.p99),
          number(f.requests_per_second),
          number(f.refused_share),
          number(f.replicas),
          number(f.service.utilization()),
          f.cost_usd ? number(*f.cost_usd) : "",
          cheapest(sweep) == k ? "cheapest" : ""};
}

}  // namespace

std::optional<std::size_t> cheapest(const ServingSweep& sweep) {
  std::optional<std::size_t> best;
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const auto& f = sweep.points[k].forecast;
    if (!f || !f->cost_usd || !holds_goal(sweep, *f)) continue;
    if (!best || *f->cost_usd < *sweep.points[*best].forecast->cost_usd) best = k;
  }
  return best;
}

std::string serving_sweep_table(const ServingSweep& sweep, int width) {
  constexpr std::array kColumns{"p50", "p95", "p99", "replicas", "busy", "refused", "cost", ""};
  const auto last = std::find_if(sweep.points.rbegin(), sweep.points.rend(),
                                 [](const auto& p) { return p.forecast.has_value(); });
  const std::string remark =
      last == sweep.points.rend()
          ? ""
          : fmt::format("  {} simulated a point{}\n", format_duration(last->forecast->period),
                        sweep.goal ? ", goal: " + sweep.goal->text : "");
  return sweep_table(sweep.scenario, sweep.paths, kColumns,
                     rows_of(sweep, [&](std::size_t k) { return serving_cells(sweep, k); }), remark,
                     width);
}

std::string serving_sweep_json(const ServingSweep& sweep) {
  Json out = head("simulate");
  out["scenario"] = sweep.scenario;
  out["goal"] = sweep.goal ? Json(sweep.goal->text) : Json();
  out["sweep"] = points_array(sweep, "serving", serving_object);
  const auto best = cheapest(sweep);
  out["cheapest"] = best ? Json(*best) : Json();
  return dump(out, 2);
}

std::string serving_sweep_csv(const ServingSweep& sweep) {
  constexpr std::array kColumns{"latency_p50_seconds",
                                "latency_p95_seconds",
                                "latency_p99_seconds",
                                "requests_per_second",
                                "refused_share",
                                "replicas_mean",
                                "utilization",
                                "cost_usd",
                                "best"};
  return sweep_csv(sweep.paths, kColumns,
                   rows_of(sweep, [&](std::size_t k) { return serving_csv_cells(sweep, k); }));
}

}  // namespace reckon
