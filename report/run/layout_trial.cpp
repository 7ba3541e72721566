#include "report/run/layout_trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/json_parts.h"
#include "report/text.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

bool is_faster(const LayoutRow& a, const LayoutRow& b) {
  if (!a.measured || !b.measured) return a.measured.has_value() && !b.measured;
  return a.measured->mean < b.measured->mean;
}

std::string command_of(const LayoutTrial& trial, const LayoutRow& row) {
  std::string words = trial.command;
  for (const std::string& change : row.changes) words += " --set " + shell_word(change);
  return words;
}

/// Do the intervals of the two means overlap?
bool is_close(const TrialFit& first, const TrialFit& next) { return next.low <= first.high; }

std::size_t measured_rows(const LayoutTrial& trial) {
  return std::size_t(std::ranges::count_if(
      trial.rows, [](const LayoutRow& row) { return row.measured.has_value(); }));
}

std::string fastest_text(const LayoutTrial& trial, const LayoutRow& first, std::size_t measured) {
  std::string out = measured == trial.rows.size()
                        ? fmt::format("fastest here: {}", first.name)
                        : fmt::format("fastest of the {} measured: {}", measured, first.name);
  const LayoutRow& next = trial.rows[1];
  if (is_close(*first.measured, *next.measured))
    out += fmt::format("\n  but not by more than the steps vary: --steps {} tells more",
                       4 * trial.steps);
  else
    out += fmt::format(", {:.3g} times as fast as the next",
                       next.measured->mean / first.measured->mean);
  return out + "\n  " + command_of(trial, first);
}

/// Of sorted rows.
std::string trial_verdict(const LayoutTrial& trial) {
  const std::size_t measured = measured_rows(trial), all = trial.rows.size();
  if (measured == 0) return "no layout was measured\n";
  std::string out;
  if (measured < all)
    out = fmt::format("{} of {} layouts {} not measured\n  ", all - measured, all,
                      all - measured == 1 ? "was" : "were");
  const LayoutRow* first = trial.fastest();
  return out +
         (first != nullptr
              ? fastest_text(trial, *first, measured)
              : fmt::format("nothing to compare: only {} was measured", trial.rows.front().name)) +
         '\n';
}

}  // namespace

const LayoutRow* LayoutTrial::fastest() const {
  if (measured_rows(*this) < 2) return nullptr;
  return &*std::ranges::min_element(rows, is_faster);
}

void sort_by_measured(LayoutTrial& trial) { std::ranges::stable_sort(trial.rows, is_faster); }

std::string layout_trial_table(const LayoutTrial& trial) {
  std::string out = fmt::format("{}: {} layouts on {}, {} steps each\n\n", trial.scenario,
                                trial.rows.size(), trial.machine, trial.steps);
  Columns table;
  table.row({"layout", "step, forecast", "step, measured", "90 % interval of the mean"});
  for (const LayoutRow& row : trial.rows) {
    if (const auto& m = row.measured)
      table.row({row.name, format_duration(row.forecast), format_duration(m->mean),
                 fmt::format("{} .. {}", format_duration(m->low), format_duration(m->high))});
    else
      table.row({row.name, format_duration(row.forecast), "-", row.reason});
  }
  return out + table.text() + '\n' + "  " + trial_verdict(trial);
}

std::string layout_trial_json(const LayoutTrial& trial) {
  Json out = head("trial");
  out["scenario"] = trial.scenario;
  out["program"] = "reckon-worker";
  out["machine"] = trial.machine;
  out["layouts"] = Json::array();
  for (const LayoutRow& row : trial.rows) {
    Json j = {{"name", row.name},
              {"changes", row.changes},
              {"forecast_step_seconds", number(row.forecast.count())},
              {"step_seconds", nullptr},
              {"reason", text_or_null(row.reason)}};
    if (const auto& m = row.measured)
      j["step_seconds"] = {{"mean", number(m->mean.count())},
                           {"p5", number(m->low.count())},
                           {"p95", number(m->high.count())}};
    out["layouts"].push_back(std::move(j));
  }
  const LayoutRow* first = trial.fastest();
  out["command_of_the_fastest"] = first ? Json(command_of(trial, *first)) : Json(nullptr);
  out["steps"] = trial.steps;
  return dump(out, 2);
}

}  // namespace reckon
