#include "report/serving_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/serving_json.h"
#include "report/text.h"
#include "sim/base/csv.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

bool holds_goal(const ServingSweep& sweep, const ServingForecast& f) {
  return !sweep.goal || (f.refused_share == 0 && evaluate(*sweep.goal, f).passed);
}

std::vector<std::string> cells_of(const ServingSweep& sweep, std::size_t k) {
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

std::string csv_line(const std::vector<std::string>& cells) {
  std::vector<std::string> quoted;
  for (const std::string& cell : cells) quoted.push_back(csv_cell(cell));
  return fmt::format("{}\n", fmt::join(quoted, ","));
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
  std::string out = sweep.scenario + "\n";
  for (std::size_t p = 0; p < sweep.paths.size(); ++p)
    out += fmt::format("  ({}) {}\n", p + 1, sweep.paths[p]);
  Columns rows;
  std::vector<std::string> header;
  for (std::size_t p = 0; p < sweep.paths.size(); ++p) header.push_back(fmt::format("({})", p + 1));
  for (const char* name : {"p50", "p95", "p99", "replicas", "busy", "refused", "cost", ""})
    header.emplace_back(name);
  rows.row(header);
  std::string reasons;
  Seconds period{};
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const ServingSweepPoint& point = sweep.points[k];
    std::vector<std::string> cells = point.values;
    if (point.forecast) {
      period = point.forecast->period;
      for (std::string& cell : cells_of(sweep, k)) cells.push_back(std::move(cell));
    } else {
      cells.emplace_back("not possible, see below");
      const auto lines =
          wrap(fmt::format("{}: {}", fmt::join(point.values, ", "), point.reason), width - 4);
      for (std::size_t l = 0; l < lines.size(); ++l)
        reasons += (l == 0 ? "  " : "    ") + lines[l] + '\n';
    }
    rows.row(std::move(cells));
  }
  out += "\n" + rows.text();
  if (period.count() > 0)
    out += fmt::format("  {} simulated a point{}\n", format_duration(period),
                       sweep.goal ? ", goal: " + sweep.goal->text : "");
  return reasons.empty() ? out : out + "\nNot possible\n" + reasons;
}

std::string serving_sweep_json(const ServingSweep& sweep) {
  Json out = head("simulate");
  out["scenario"] = sweep.scenario;
  out["goal"] = sweep.goal ? Json(sweep.goal->text) : Json();
  out["sweep"] = Json::array();
  for (const ServingSweepPoint& point : sweep.points) {
    Json values = Json::object();
    for (std::size_t p = 0; p < sweep.paths.size(); ++p) values[sweep.paths[p]] = point.values[p];
    out["sweep"].push_back({{"values", std::move(values)},
                            {"serving", point.forecast ? serving_object(*point.forecast) : Json()},
                            {"reason", text_or_null(point.reason)}});
  }
  const auto best = cheapest(sweep);
  out["cheapest"] = best ? Json(*best) : Json();
  return dump(out, 2);
}

std::string serving_sweep_csv(const ServingSweep& sweep) {
  std::vector<std::string> header = sweep.paths;
  for (const char* name :
       {"latency_p50_seconds", "latency_p95_seconds", "latency_p99_seconds", "requests_per_second",
        "refused_share", "replicas_mean", "utilization", "cost_usd", "best", "reason"})
    header.emplace_back(name);
  std::string out = csv_line(header);
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const ServingSweepPoint& point = sweep.points[k];
    std::vector<std::string> cells = point.values;
    const auto add = [&](bool known, double value) {
      cells.push_back(known ? fmt::format("{}", value) : "");
    };
    const ServingForecast none;
    const bool there = point.forecast.has_value();
    const ServingForecast& f = there ? *point.forecast : none;
    const bool timed = f.service.latency.count() > 0;
    add(timed, f.p50.count());
    add(timed, f.p95.count());
    add(timed, f.p99.count());
    add(there, f.requests_per_second);
    add(there, f.refused_share);
    add(there, f.replicas);
    add(there, f.service.utilization());
    add(f.cost_usd.has_value(), f.cost_usd.value_or(0));
    cells.emplace_back(cheapest(sweep) == k ? "cheapest" : "");
    cells.push_back(point.reason);
    out += csv_line(cells);
  }
  return out;
}

}  // namespace reckon
