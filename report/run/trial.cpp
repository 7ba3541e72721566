#include "report/run/trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

/// The row with the lowest median of `value`, of those that have one; nullptr: none.
const TrialRow* least(const Trial& trial,
                      const std::function<std::optional<double>(const TrialRow&)>& value) {
  const TrialRow* best = nullptr;
  for (const TrialRow& row : trial.rows) {
    const auto mine = row.reason.empty() ? value(row) : std::nullopt;
    if (mine && (best == nullptr || *mine < *value(*best))) best = &row;
  }
  return best;
}

std::optional<double> median_time_of(const TrialRow& row) { return row.time_seconds.p50; }
std::optional<double> median_cost_of(const TrialRow& row) {
  return row.cost_usd ? std::optional(row.cost_usd->p50) : std::nullopt;
}

/// A job of minutes may be won by that alone.
constexpr std::string_view kAlone =
    "(this machine's time excludes start-up, checkpoints and failures; the plans' times include "
    "them)";

/// Whether something else than this machine pays, in a few sentences.
std::vector<std::string> verdicts(const Trial& trial) {
  std::vector<std::string> out;
  const TrialRow& here = trial.rows.front();
  const TrialRow* fastest = least(trial, median_time_of);
  const TrialRow* cheapest = least(trial, median_cost_of);
  if (trial.rows.size() < 2 || fastest == nullptr) return out;
  if (fastest == &here)
    out.emplace_back("none of these is faster than this machine");
  else
    out.push_back(fmt::format("fastest: {}, {:.3g} times as fast as this machine", fastest->name,
                              here.time_seconds.p50 / fastest->time_seconds.p50));
  if (cheapest == nullptr) {
    out.emplace_back(kAlone);
    return out;
  }
  if (here.cost_usd && cheapest != &here)
    out.push_back(fmt::format("cheapest: {}, {:.3g} of this machine's cost", cheapest->name,
                              cheapest->cost_usd->p50 / here.cost_usd->p50));
  else if (here.cost_usd)
    out.emplace_back("none of these is cheaper than this machine");
  else
    out.push_back(fmt::format(
        "cheapest: {}, unless this machine costs less than {} an hour (--price says what it costs)",
        cheapest->name, format_usd(Usd{cheapest->cost_usd->p50 / (here.time_seconds.p50 / 3600)})));
  out.emplace_back(kAlone);
  return out;
}

}  // namespace

std::string trial_table(const Trial& trial) {
  const TrialFit& fit = trial.fit;
  std::string out = fmt::format("{}: {} on {}\n\n", trial.scenario, trial.program, trial.machine);
  Columns facts(Columns::Kind::facts);
  facts.row({"a step took", fmt::format("{} ({} .. {}, 90 % interval of the mean), by {}",
                                        format_duration(fit.mean), format_duration(fit.low),
                                        format_duration(fit.high), trial.sample.clock)});
  facts.row({"measured", fmt::format("{} steps, {} of {} values left out as warm-up",
                                     trial.sample.steps, fit.warmup, fit.warmup + fit.values)});
  facts.row({"samples", fmt::format("{} a step, {:.4g} a second", trial.batch,
                                    double(trial.batch) / fit.mean.count())});
  if (trial.sample.loss) facts.row({"loss", fmt::format("{:.4g}", *trial.sample.loss)});
  if (trial.forecast_step.count() > 0)
    facts.row(
        {"one worker of the plan", fmt::format("{} as forecast, {:+.1f} % of what was measured",
                                               format_duration(trial.forecast_step),
                                               100 * (trial.forecast_step / fit.mean - 1))});
  out += facts.text() + '\n';
  Columns table;
  table.row({"The whole job", "step", "time", "cost"});
  for (const TrialRow& row : trial.rows) {
    if (row.reason.empty())
      table.row({row.name, format_duration(row.step), time_range(row.time_seconds),
                 row.cost_usd ? usd_range(*row.cost_usd) : "-"});
    else
      table.row({row.name, row.reason});
  }
  out += table.text();
  const std::vector<std::string> verdict = verdicts(trial);
  if (!verdict.empty()) out += '\n';
  for (const std::string& line : verdict) out += "  " + line + '\n';
  for (const std::string& warning : trial.warnings) out += "\nwarning: " + warning + '\n';
  return out;
}

std::string trial_json(const Trial& trial) {
  Json out = head("trial");
  out["scenario"] = trial.scenario;
  out["program"] = trial.program;
  out["machine"] = trial.machine;
  out["measured"] = {{"step_seconds",
                      {{"mean", number(trial.fit.mean.count())},
                       {"p5", number(trial.fit.low.count())},
                       {"p95", number(trial.fit.high.count())}}},
                     {"clock", trial.sample.clock},
                     {"steps", trial.sample.steps},
                     {"values", trial.fit.values},
                     {"warmup", trial.fit.warmup},
                     {"batch", trial.batch},
                     {"loss", trial.sample.loss ? number(*trial.sample.loss) : Json(nullptr)}};
  out["forecast_step_seconds"] =
      trial.forecast_step.count() > 0 ? number(trial.forecast_step.count()) : Json(nullptr);
  out["rows"] = Json::array();
  for (const TrialRow& row : trial.rows) {
    Json j = {{"name", row.name}, {"reason", text_or_null(row.reason)}};
    const bool there = row.reason.empty();
    j["step_seconds"] = there ? number(row.step.count()) : Json(nullptr);
    j["time_seconds"] = there ? json_of(row.time_seconds) : Json(nullptr);
    j["cost_usd"] = row.cost_usd ? json_of(*row.cost_usd) : Json(nullptr);
    out["rows"].push_back(std::move(j));
  }
  out["warnings"] = trial.warnings;
  return dump(out, 2);
}

}  // namespace reckon
