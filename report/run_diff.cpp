#include "report/run_diff.h"

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {

namespace {

std::string where(bool within) { return within ? "within" : "outside"; }

Json json_of(const std::optional<DiffRange>& range) {
  if (!range) return nullptr;
  return {{"forecast", json_of(range->forecast)},
          {"run", range->run},
          {"within_interval", range->within_interval()}};
}

}  // namespace

std::string diff_table(const RunDiff& diff) {
  std::string out = fmt::format("{}: the run took {}, {} the forecast's {}\n\n", diff.scenario,
                                format_duration(diff.spans.back().run), where(diff.within_interval),
                                time_range(diff.forecast_time));
  Columns table;
  table.row({"", "forecast", "run", "error"});
  for (const DiffSpan& s : diff.spans) {
    if (s.forecast.count() == 0 && s.run.count() == 0) continue;
    const auto error = s.error();
    table.row({s.name, format_duration(s.forecast), format_duration(s.run),
               error ? fmt::format("{:+.1f} %", 100 * *error) : "-"});
  }
  out += table.text();
  if (diff.goodput)
    out +=
        fmt::format("goodput of the run {}, {} the forecast's {}\n",
                    fmt::format("{:.1f} %", 100 * diff.goodput->run),
                    where(diff.goodput->within_interval()), percent_range(diff.goodput->forecast));
  if (diff.lost_work_seconds && diff.lost_work_seconds->forecast.p95 > 0)
    out += fmt::format("lost work of the run {}, {} the forecast's {}\n",
                       format_duration(Seconds{diff.lost_work_seconds->run}),
                       where(diff.lost_work_seconds->within_interval()),
                       time_range(diff.lost_work_seconds->forecast));
  if (!diff.causes.empty()) out += "\nWhere it differed\n";
  for (const std::string& cause : diff.causes) out += "  - " + cause + '\n';
  return out;
}

std::string diff_json(const RunDiff& diff) {
  Json out = head("diff");
  out["scenario"] = diff.scenario;
  out["within_interval"] = diff.within_interval;
  out["goodput"] = json_of(diff.goodput);
  out["lost_work_seconds"] = json_of(diff.lost_work_seconds);
  out["spans"] = Json::array();
  for (const DiffSpan& s : diff.spans) {
    const auto error = s.error();
    out["spans"].push_back({{"name", s.name},
                            {"forecast_seconds", s.forecast.count()},
                            {"run_seconds", s.run.count()},
                            {"error", error ? number(*error) : Json(nullptr)}});
  }
  out["causes"] = diff.causes;
  return dump(out, 2);
}

}  // namespace reckon
