#include "report/run/diff.h"

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {

namespace {

constexpr int kWidth = 100;

std::string where(bool within) { return within ? "within" : "outside"; }

Json json_of_difference(const std::optional<DiffRange>& range) {
  if (!range) return nullptr;
  return {{"forecast", json_of(range->forecast)},
          {"run", range->run},
          {"within_interval", range->within_interval()}};
}

std::string error_percent(std::optional<double> error) {
  return error ? fmt::format("{:+.1f} %", 100 * *error) : "-";
}

std::string usd(double v) { return format_usd(Usd{v}); }

/// The answers, each with its 5th to 95th percentile: the ends decide.
std::string answers(const RunDiff& diff) {
  const auto ends = [](std::string low, std::string high) {
    return fmt::format("{} .. {}", low, high);
  };
  const Quantiles& time = diff.time.forecast;
  std::string out = fmt::format(
      "{}: the run took {}, {} the forecast's {}{}\n", diff.scenario,
      format_duration(Seconds{diff.time.run}), where(diff.time.within_interval()),
      ends(format_duration(Seconds{time.p5}), format_duration(Seconds{time.p95})),
      diff.paused.count() > 0 ? fmt::format(" (paused {} besides)", format_duration(diff.paused))
                              : "");
  if (diff.cost_usd)
    out += fmt::format("{}: the run cost {}, {} the forecast's {}\n", diff.scenario,
                       usd(diff.cost_usd->run), where(diff.cost_usd->within_interval()),
                       ends(usd(diff.cost_usd->forecast.p5), usd(diff.cost_usd->forecast.p95)));
  return out + '\n';
}

std::string rows(const RunDiff& diff) {
  Columns table;
  table.row({"mean", "forecast", "run", "error"});
  for (const DiffSpan& s : diff.spans) {
    if (s.forecast.count() == 0 && s.run.count() == 0) continue;
    table.row(
        {s.name, format_duration(s.forecast), format_duration(s.run), error_percent(s.error())});
  }
  for (const DiffCost& c : diff.costs) {
    if (c.forecast_usd == 0 && c.run_usd == 0) continue;
    table.row({c.name, usd(c.forecast_usd), usd(c.run_usd), error_percent(c.error())});
  }
  return table.text();
}

/// `first` begins the paragraph, what does not fit on its line is set under it.
std::string paragraph(const std::string& first, const std::string& text) {
  std::string out;
  const std::string below(first.size(), ' ');
  for (const std::string& line : wrap(text, kWidth - int(first.size())))
    out += (out.empty() ? first : below) + line + '\n';
  return out;
}

std::string causes(const RunDiff& diff) {
  if (diff.causes.empty()) return "";
  std::string out = "\nWhere it differed\n";
  for (const DiffCause& c : diff.causes) {
    const bool of_step = c.row.starts_with("step.");
    out += paragraph(of_step ? "    - " : "  - ", c.text);
    for (const Explaining& e : c.assumptions)
      out += paragraph(of_step ? "        " : "      ", to_text(e));
  }
  if (!diff.names_assumptions)
    out +=
        "The forecast lacks the effects of its assumptions: make it again with 'reckon simulate "
        "--format json'.\n";
  return out;
}

Json json_of_difference(const Explaining& e) {
  const AssumptionEffect& a = e.assumption;
  return {{"what", a.what},
          {"key", a.key},
          {"unit", a.unit},
          {"median", a.median},
          {"low", a.low},
          {"high", a.high},
          {"source", a.source},
          {"explaining_value", e.value ? number(*e.value) : Json(nullptr)},
          {"percentile", e.value ? number(e.percentile) : Json(nullptr)},
          {"within_range", e.within_range()}};
}

Json json_of_difference(const DiffCause& c) {
  const bool money = c.row.starts_with("cost");
  Json out = {{"name", c.row}, {money ? "difference_usd" : "difference_seconds", c.difference}};
  out["assumptions"] = Json::array();
  for (const Explaining& e : c.assumptions) out["assumptions"].push_back(json_of_difference(e));
  return out;
}

}  // namespace

std::string diff_table(const RunDiff& diff) {
  std::string out = answers(diff) + rows(diff);
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
  return out + causes(diff);
}

std::string diff_json(const RunDiff& diff, const BillComparison* bill) {
  Json out = head("diff");
  out["scenario"] = diff.scenario;
  out["within_interval"] = diff.within_interval();
  out["time_seconds"] = json_of_difference(std::optional(diff.time));
  out["paused_seconds"] = diff.paused.count();
  out["cost_usd"] = json_of_difference(diff.cost_usd);
  out["goodput"] = json_of_difference(diff.goodput);
  out["lost_work_seconds"] = json_of_difference(diff.lost_work_seconds);
  out["spans"] = Json::array();
  for (const DiffSpan& s : diff.spans) {
    const auto error = s.error();
    out["spans"].push_back({{"name", s.name},
                            {"forecast_seconds", s.forecast.count()},
                            {"run_seconds", s.run.count()},
                            {"error", error ? number(*error) : Json(nullptr)}});
  }
  out["costs"] = Json::array();
  for (const DiffCost& c : diff.costs) {
    const auto error = c.error();
    out["costs"].push_back({{"name", c.name},
                            {"forecast_usd", c.forecast_usd},
                            {"run_usd", c.run_usd},
                            {"error", error ? number(*error) : Json(nullptr)}});
  }
  out["causes"] = Json::array();
  for (const DiffCause& c : diff.causes) out["causes"].push_back(c.text);
  out["differences"] = Json::array();
  for (const DiffCause& c : diff.causes) out["differences"].push_back(json_of_difference(c));
  if (bill != nullptr) out["bill"] = bill_object(*bill);
  return dump(out, 2);
}

}  // namespace reckon
