#include "report/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/csv.h"

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

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + csv_cell(cell);
  return line + "\n";
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
  std::string out = sweep.scenario + "\n";
  for (std::size_t p = 0; p < sweep.paths.size(); ++p)
    out += fmt::format("  ({}) {}\n", p + 1, sweep.paths[p]);
  Columns rows;
  std::vector<std::string> header;
  for (std::size_t p = 0; p < sweep.paths.size(); ++p) header.push_back(fmt::format("({})", p + 1));
  for (const char* name : {"time", "cost", "goodput", "samples/s", ""}) header.emplace_back(name);
  rows.row(header);
  std::string reasons;
  int replications = 0;
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const SweepPoint& point = sweep.points[k];
    std::vector<std::string> cells = point.values;
    if (point.forecast) {
      const Forecast& f = *point.forecast;
      replications = f.replications;
      cells.push_back(time_range(f.time_seconds));
      cells.push_back(f.cost_usd ? usd_range(*f.cost_usd) : "unknown");
      cells.push_back(fmt::format("{:.1f} %", 100 * f.goodput.p50));
      cells.push_back(fmt::format("{:.0f}", f.step.samples_per_second.v));
      cells.push_back(marks(sweep, k));
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
  if (replications > 0)
    out +=
        fmt::format("  median (5th .. 95th percentile) of {} replications a point\n", replications);
  return reasons.empty() ? out : out + "\nNot possible\n" + reasons;
}

std::string sweep_json(const Sweep& sweep) {
  Json out = head("simulate");
  out["scenario"] = sweep.scenario;
  out["sweep"] = Json::array();
  for (const SweepPoint& point : sweep.points) {
    Json values = Json::object();
    for (std::size_t p = 0; p < sweep.paths.size(); ++p) values[sweep.paths[p]] = point.values[p];
    out["sweep"].push_back(
        {{"values", std::move(values)},
         {"forecast", point.forecast ? forecast_object(*point.forecast) : Json(nullptr)},
         {"reason", text_or_null(point.reason)}});
  }
  const auto index_or_null = [](std::optional<std::size_t> k) {
    return k ? Json(*k) : Json(nullptr);
  };
  out["fastest"] = index_or_null(fastest(sweep));
  out["cheapest"] = index_or_null(cheapest(sweep));
  return dump(out, 2);
}

std::string sweep_csv(const Sweep& sweep) {
  std::vector<std::string> header = sweep.paths;
  for (const char* name :
       {"time_seconds_mean", "time_seconds_p5", "time_seconds_p50", "time_seconds_p95",
        "cost_usd_mean", "cost_usd_p5", "cost_usd_p50", "cost_usd_p95", "goodput_mean",
        "samples_per_second", "step_seconds", "accelerators", "best", "reason"})
    header.emplace_back(name);
  std::string out = csv_line(header);
  for (std::size_t k = 0; k < sweep.points.size(); ++k) {
    const SweepPoint& point = sweep.points[k];
    std::vector<std::string> cells = point.values;
    const Forecast* f = point.forecast ? &*point.forecast : nullptr;
    csv_quantiles(cells, f ? std::optional(f->time_seconds) : std::nullopt);
    csv_quantiles(cells, f ? f->cost_usd : std::nullopt);
    cells.push_back(f ? csv_number(f->goodput.mean) : "");
    cells.push_back(f ? csv_number(f->step.samples_per_second.v) : "");
    cells.push_back(f ? csv_number(f->step.step.count()) : "");
    cells.push_back(f ? fmt::format("{}", f->accelerators) : "");
    cells.push_back(marks(sweep, k));
    cells.push_back(point.reason);
    out += csv_line(cells);
  }
  return out;
}

}  // namespace reckon
