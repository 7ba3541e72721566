#include <fmt/format.h>

#include <cmath>

#include "report/memo.h"
#include "report/memo_parts.h"
#include "report/plan.h"
#include "report/plan_memo.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/plan_draft.h"

// Today's best plan against a baseline.
namespace reckon {
namespace {

struct Row {
  std::string what, before, now;
};

std::string strategy_of(const PlannedWorkload& job) {
  const PlannedStrategy& s = job.strategy;
  std::string text(planning::to_text(s.kind));
  if (s.replica() > 1)
    text += fmt::format(", tensor {} x pipeline {} x context {}", s.tensor, s.pipeline, s.context);
  if (s.expert > 1) text += fmt::format(", expert {}", s.expert);
  if (s.zero_stage > 0) text += fmt::format(", ZeRO-{}", s.zero_stage);
  if (s.parameter_servers > 0) text += fmt::format(", {} servers", s.parameter_servers);
  if (s.recompute != Recompute::none)
    text += s.recompute == Recompute::full ? ", full recomputation" : ", selective recomputation";
  return text;
}

std::string batch_of(const PlannedWorkload& job) {
  return fmt::format("{} per accelerator, {} a step", job.batch_per_accelerator,
                     format_count(double(job.global_batch)));
}

std::string mean_time(std::optional<double> seconds) {
  return seconds ? time_value(Seconds{*seconds}) : "not said";
}
std::string mean_cost(std::optional<double> usd) { return usd ? usd_value(*usd) : "unknown"; }

std::optional<double> mean_of(const std::optional<Quantiles>& q) {
  return q ? std::optional(q->mean) : std::nullopt;
}

/// What the plans are, then what they cost: the baseline when it was made, and today's best.
std::vector<Row> rows_of(const BaselineInputs& in) {
  const Plan& before = in.baseline.plan;
  const PlannedWorkload& old = before.jobs.front();
  std::vector<Row> rows;
  const auto add = [&](const char* what, std::string was, std::string is) {
    rows.push_back({what, std::move(was), in.best == nullptr ? "no plan fits" : std::move(is)});
  };
  const Plan& best = in.best == nullptr ? before : *in.best;
  const PlannedWorkload& job = best.jobs.front();
  add("hardware", hardware_text(before), hardware_text(best));
  add("strategy", strategy_of(old), strategy_of(job));
  add("batch", batch_of(old), batch_of(job));
  add("precision", std::string(to_text(old.precision)), std::string(to_text(job.precision)));
  const Forecast& today = in.baseline.today.forecast;
  const Forecast* now = in.best == nullptr ? nullptr : &in.answer.plans.front().result.forecast;
  const bool said = in.baseline.time_then.has_value();
  add("mean time", said ? mean_time(in.baseline.time_then) : mean_time(today.time_seconds.mean),
      now ? mean_time(now->time_seconds.mean) : "");
  add("mean cost", said ? mean_cost(in.baseline.cost_then) : mean_cost(mean_of(today.cost_usd)),
      now ? mean_cost(mean_of(now->cost_usd)) : "");
  add("prices as of", said ? in.baseline.prices_then : before.prices_as_of, best.prices_as_of);
  add("catalog", said ? in.baseline.catalog_then : before.catalog_digest, best.catalog_digest);
  return rows;
}

std::string verdict_text(const BaselineInputs& in) {
  const std::string than =
      fmt::format("{} ({})", in.baseline.name, planner::to_text(in.answer.objective));
  if (in.best == nullptr) return fmt::format("No plan fits today; the baseline is {}.", than);
  const double percent = 100 * in.verdict.change;
  const std::string change = std::abs(percent) < 0.05 ? "as good as"
                             : percent > 0            ? fmt::format("{:.1f} % worse than", percent)
                                           : fmt::format("{:.1f} % better than", -percent);
  return fmt::format("Today's best plan is {} the baseline {}; {} % are tolerated{}.", change, than,
                     fmt::format("{:g}", 100 * in.tolerance), in.verdict.worse ? ": too much" : "");
}

/// What the baseline's plan itself would be today: prices and models have changed, not the plan.
std::string today_text(const BaselineInputs& in) {
  const Forecast& f = in.baseline.today.forecast;
  if (!f.feasible) return "The baseline's own plan does not fit in memory with today's catalog.";
  std::string text = fmt::format("The baseline's own plan would take {} and cost {} today",
                                 mean_time(f.time_seconds.mean), mean_cost(mean_of(f.cost_usd)));
  if (!in.baseline.today.meets_deadline) text += ", and miss the deadline";
  if (!in.baseline.today.meets_budget) text += ", and miss the budget";
  return text + ".";
}

}  // namespace

std::string baseline_text(const BaselineInputs& in) {
  std::string out =
      "\nAgainst the baseline\n  " + verdict_text(in) + "\n  " + today_text(in) + "\n";
  for (const Row& r : rows_of(in)) {
    if (r.before == r.now) {
      out += fmt::format("    {}: {}\n", r.what, r.now);
      continue;
    }
    out += fmt::format("  - {}: {}\n  + {}: {}\n", r.what, r.before, r.what, r.now);
  }
  return out;
}

std::string baseline_markdown(const BaselineInputs& in) {
  std::string out = fmt::format("### {}: {}\n\n{}\n\n{}\n\n", markdown_safe(in.answer.scenario),
                                in.verdict.worse ? "worse than the baseline" : "within tolerance",
                                markdown_safe(verdict_text(in)), markdown_safe(today_text(in)));
  out += markdown_header({"", "baseline", "today"});
  for (const Row& r : rows_of(in)) {
    const std::string now = markdown_safe(r.now);
    out += markdown_row(
        {r.what, markdown_safe(r.before), r.before == r.now ? now : "**" + now + "**"});
  }
  const std::string command =
      in.answer.file.empty() ? "reckon plan" : "reckon plan " + in.answer.file;
  return out + fmt::format("\n{} replications, seed {}; {}.\n",
                           format_count(in.answer.replications), in.answer.seed,
                           markdown_code(command));
}

}  // namespace reckon
