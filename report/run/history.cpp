#include "report/run/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

bool is_decision(const ScoredForecast& f) {
  return f.forecast.kind == HistoryRecord::Kind::decision;
}

}  // namespace

std::string history_table(const HistoryScore& score, std::size_t most) {
  if (score.forecasts.empty()) return "no forecast is kept yet\n";
  Columns table;
  table.row({"when", "forecast", "run", "error", "in 90 %", "of"});
  const std::size_t from = score.forecasts.size() - std::min(most, score.forecasts.size());
  for (std::size_t k = from; k < score.forecasts.size(); ++k) {
    const ScoredForecast& f = score.forecasts[k];
    table.row({f.forecast.at, time_range(f.forecast.time_seconds),
               f.run ? format_duration(Seconds{f.run->time_seconds.p50}) : "-",
               f.run ? fmt::format("{:+.1f} %", 100 * f.error) : "-",
               !f.run     ? "-"
               : f.inside ? "yes"
                          : "no",
               (is_decision(f) ? "decision in a run of " : "") + f.forecast.plan});
  }
  std::string out = table.text();
  if (score.scored == 0) return out + "\nnone has been run yet\n";
  out += fmt::format("\n{} of {} inside the 90 % interval; median error {:.1f} %\n", score.inside,
                     score.scored, 100 * score.median_error);
  if (score.calibrated > 0)
    out += fmt::format("{} of them calibrated: median error {:.1f} %\n", score.calibrated,
                       100 * score.median_error_calibrated);
  return out;
}

std::string history_json(const HistoryScore& score) {
  Json out = head("history");
  out["forecasts"] = Json::array();
  for (const ScoredForecast& f : score.forecasts)
    out["forecasts"].push_back(
        {{"at", f.forecast.at},
         {"kind", is_decision(f) ? "decision" : "forecast"},
         {"plan", f.forecast.plan},
         {"time_seconds", json_of(f.forecast.time_seconds)},
         {"calibrations", f.forecast.calibrations},
         {"run_seconds", f.run ? number(f.run->time_seconds.p50) : Json(nullptr)},
         {"run_directory", f.run ? Json(f.run->directory) : Json(nullptr)},
         {"within_interval", f.run ? Json(f.inside) : Json(nullptr)},
         {"error", f.run ? number(f.error) : Json(nullptr)}});
  out["scored"] = score.scored;
  out["inside"] = score.inside;
  out["median_absolute_error"] = score.scored > 0 ? number(score.median_error) : Json(nullptr);
  out["calibrated"] = score.calibrated;
  out["median_absolute_error_calibrated"] =
      score.calibrated > 0 ? number(score.median_error_calibrated) : Json(nullptr);
  return dump(out, 2);
}

}  // namespace reckon
