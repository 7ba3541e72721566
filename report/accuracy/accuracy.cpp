#include "report/accuracy/accuracy.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/accuracy/rows.h"
#include "report/text.h"

namespace reckon {
namespace {

std::string score_percent(double v) { return fmt::format("{:.1f} %", 100 * v); }
std::string signed_percent(double v) { return fmt::format("{:+.1f} %", 100 * v); }

std::vector<std::string> score_head(std::string first) {
  return {std::move(first), "n", "median", "mean", "p90", "max", "bias", "rank", "coverage", "+-"};
}

std::vector<std::string> score_cells(std::string name, const Scores& s) {
  if (s.runs == 0) return {std::move(name), "0", "-", "-", "-", "-", "-", "-", "-", "-"};
  return {std::move(name),
          fmt::format("{}", s.runs),
          score_percent(s.median_absolute_error),
          score_percent(s.mean_absolute_error),
          score_percent(s.p90_absolute_error),
          score_percent(s.max_absolute_error),
          signed_percent(s.bias),
          fmt::format("{:.3f}", s.rank_correlation),
          score_percent(s.interval_coverage),
          score_percent(s.interval_median_half_width)};
}

std::string skipped_table(const AccuracyReport& report) {
  Columns rows(Columns::Kind::facts);
  for (const auto& [reason, rows_of] : report.skipped)
    rows.row(
        {fmt::format("{:>6}", rows_of.count), reason,
         fmt::format("{} {}", rows_of.count == 1 ? "line" : "first in line", rows_of.first_line)});
  return rows.empty() ? "" : "\nSkipped\n" + rows.text();
}

std::string worst_table(const AccuracyReport& report, int worst) {
  if (worst == 0 || report.runs.empty()) return "";
  Columns rows;
  rows.row({"error", "measured", "predicted", "line", "source", "run"});
  for (const ScoredRun* r : worst_runs(report, worst)) {
    const RunConfiguration& run = r->at.run;
    rows.row(
        {signed_percent(r->error()), fmt::format("{:.4g}", r->measured),
         fmt::format("{:.4g}", r->predicted), fmt::format("{}", r->at.line),
         std::string(r->at.source),
         fmt::format("{} x {} {} {} {} {} batch {}", run.accelerators, run.accelerator,
                     model_name(run), run.precision, run.strategy, run.stack, run.global_batch)});
  }
  return fmt::format("\nLargest errors ({})\n", report.unit) + rows.text();
}

std::string parts_table(const Evaluation& e) {
  std::string out;
  for (const auto& [dimension, parts] : e.by) {
    Columns rows;
    rows.row(score_head(dimension));
    for (const NamedScores& part : parts) rows.row(score_cells(part.name, part.runs));
    out += "\n" + rows.text();
  }
  return out;
}

std::string regret_table(const Regret& regret) {
  Columns rows;
  rows.row({"Regret of the chosen layout", "groups", "mean", "max"});
  const auto row = [&](const char* name, const RegretScores& r) {
    rows.row({name, fmt::format("{}", r.groups), r.groups ? score_percent(r.mean) : "-",
              r.groups ? score_percent(r.max) : "-"});
  };
  row("one node", regret.one_node);
  row("many nodes", regret.many_nodes);
  row("trust C (not counted)", regret.weak);
  return "\n" + rows.text();
}

/// How far runs of the same lie from their own median (the noise floor), how close other sources'
/// median comes to each (a baseline), and how close the prediction.
std::string others_table(const AccuracyReport& report) {
  if (report.others.empty()) return "";
  Columns rows;
  rows.row(score_head("Where other sources ran the same"));
  for (const OthersScores& same : report.others) {
    std::string name = same.name;
    std::ranges::replace(name, '_', ' ');
    rows.row(score_cells("same " + name + ": from the median of all", same.floor));
    rows.row(score_cells("  the others' median", same.others));
    rows.row(score_cells("  predicted", same.predicted));
  }
  return "\n" + rows.text();
}

std::string summary_table(const Evaluation& e) {
  Columns rows;
  rows.row(score_head(""));
  rows.row(score_cells("by run", e.runs));
  rows.row(score_cells("by group", e.groups));
  for (const NamedScores& target : e.targets) rows.row(score_cells(target.name, target.groups));
  return rows.text();
}

}  // namespace

std::string accuracy_table(const AccuracyReport& report, int worst) {
  std::string out = fmt::format("{} rows, {} scored\n", report.rows, report.runs.size());
  if (report.filtered_out > 0)
    out += fmt::format("{} rows were not asked for\n", report.filtered_out);
  out += fmt::format(
      "Errors are predicted / measured - 1 of {}; a group is all runs of one accelerator, model\n"
      "and number of accelerators and counts once, with the median of its runs.\n\n{}\n",
      report.unit,
      report.cross_validated
          ? "Cold, cross-validated: the catalog is fitted anew without each run's fold"
          : "Cold: nothing measured is given; the catalog's rows are fitted to some of these "
            "sources");
  out += summary_table(report.cold);
  out += others_table(report);
  for (const WarmEvaluation& w : report.warm) {
    out += fmt::format(
        "\nWarm {}: this many runs on the fewest accelerators of each source, model, accelerator, "
        "precision\nand stack are measured; the rest is predicted\n",
        w.points);
    Columns rows;
    rows.row(score_head(""));
    rows.row(score_cells("by run", w.rest.runs));
    rows.row(score_cells("by group", w.rest.groups));
    rows.row(score_cells("on more accelerators, by run", w.larger_runs));
    rows.row(score_cells("on more accelerators, by group", w.larger_groups));
    for (const NamedScores& t : w.rest.targets) rows.row(score_cells(t.name, t.groups));
    out += rows.text();
  }
  if (report.regret) out += regret_table(*report.regret);
  if (report.cold.memory.runs > 0) {
    const Scores& m = report.cold.memory;
    out += fmt::format("\nPeak of memory, {} runs: median {}, p90 {}, max {}, bias {}\n", m.runs,
                       score_percent(m.median_absolute_error), score_percent(m.p90_absolute_error),
                       score_percent(m.max_absolute_error), signed_percent(m.bias));
  }
  if (report.cold.does_not_fit > 0)
    out += fmt::format(
        "\n{} of {} runs that ran are predicted out of memory (P(out of memory) above {:.0f} %).\n",
        report.cold.does_not_fit, report.runs.size(), 100 * kCannotFit);
  if (report.cold.over_plans_risk > 0)
    out += fmt::format(
        "\n{} of {} runs that ran have a higher risk than `reckon plan` takes (P(out of memory) "
        "above {:.0f} %).\n",
        report.cold.over_plans_risk, report.runs.size(), 100 * kRiskOfAPlan);
  if (report.cold.memory_unknown > 0)
    out += fmt::format(
        "\n{} runs do not state recomputation, offload or network size: their memory is not "
        "predicted.\n",
        report.cold.memory_unknown);
  out += parts_table(report.cold);
  return out + worst_table(report, worst) + skipped_table(report);
}

}  // namespace reckon
