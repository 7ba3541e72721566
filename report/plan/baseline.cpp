#include <fmt/format.h>

#include <cmath>

#include "report/memo/memo.h"
#include "report/memo/parts.h"
#include "report/plan/memo.h"
#include "report/plan/plan.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/split_text.h"

// Today's best plan against a baseline.
namespace reckon {
namespace {

struct BaselineRow {
  std::string what, before, now;
};

std::string strategy_of(const PlannedWorkload& job) {
  return split_text(job) + planner::recompute_text(layout_of(job));
}

std::string batch_of(const PlannedWorkload& job) {
  return fmt::format("{} per accelerator, {} a step", job.strategy.layout.micro_batch,
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
std::vector<BaselineRow> rows_of(const BaselineInputs& in) {
  const Plan* before = in.baseline.plan ? &*in.baseline.plan : nullptr;
  std::vector<BaselineRow> rows;
  const auto of_plans = [&](const char* what, auto&& text) {
    rows.push_back({what, before == nullptr ? "no plan today" : text(*before),
                    in.best == nullptr ? "no plan fits" : text(*in.best)});
  };
  const auto of_jobs = [&](const char* what, auto&& text) {
    of_plans(what, [&](const Plan& p) { return std::string(text(p.only_job())); });
  };
  of_plans("hardware", [](const Plan& p) { return hardware_text(p); });
  of_jobs("strategy", [](const PlannedWorkload& job) { return strategy_of(job); });
  of_jobs("batch", [](const PlannedWorkload& job) { return batch_of(job); });
  of_jobs("precision", [](const PlannedWorkload& job) { return to_text(job.precision); });
  const bool said = in.baseline.time_then.has_value();
  const Forecast* then = in.baseline.today ? &in.baseline.today->forecast : nullptr;
  const Forecast* now = in.best == nullptr ? nullptr : &in.answer.plans.front().result.forecast;
  const auto time = [](const Forecast* f) {
    return f == nullptr ? "no plan fits" : mean_time(f->time_seconds.mean);
  };
  const auto cost = [](const Forecast* f) {
    return f == nullptr ? "no plan fits" : mean_cost(mean_of(f->cost_usd));
  };
  rows.push_back({"mean time", said ? mean_time(in.baseline.time_then) : time(then), time(now)});
  rows.push_back({"mean cost", said ? mean_cost(in.baseline.cost_then) : cost(then), cost(now)});
  of_plans("prices as of", [](const Plan& p) { return p.prices_as_of; });
  of_plans("catalog", [](const Plan& p) { return p.catalog_digest; });
  if (said) {
    rows[rows.size() - 2].before = in.baseline.prices_then;
    rows[rows.size() - 1].before = in.baseline.catalog_then;
  }
  return rows;
}

/// Two batches do not learn alike: time and cost of equal lengths do not compare equal results.
std::string other_batch_text(const BaselineInputs& in) {
  if (!in.baseline.plan || in.best == nullptr) return "";
  const std::int64_t then = in.baseline.plan->only_job().global_batch;
  const std::int64_t now = in.best->only_job().global_batch;
  if (then == now) return "";
  return fmt::format(
      " Their global batches differ ({} samples then, {} now), so convergence may differ.",
      format_count(double(then)), format_count(double(now)));
}

/// "; prices, not an edit, made it so".
std::string cause_text(const BaselineInputs& in) {
  if (!in.verdict.cause) return "";
  return in.verdict.fails() ? ", by your edit"
                            : fmt::format(", by {}, not by an edit", to_text(*in.verdict.cause));
}

std::string verdict_text(const BaselineInputs& in) {
  const std::string than = fmt::format("{} ({})", in.baseline.name, to_text(in.answer.objective));
  if (in.best == nullptr)
    return fmt::format("No plan fits today{}; the baseline is {}.", cause_text(in), than);
  const double percent = 100 * in.verdict.change;
  const std::string change = std::abs(percent) < 0.05 ? "as good as"
                             : percent > 0            ? fmt::format("{:.1f} % worse than", percent)
                                           : fmt::format("{:.1f} % better than", -percent);
  return fmt::format("Today's best plan is {} the baseline {}; {} % are tolerated{}.{}", change,
                     than, fmt::format("{:g}", 100 * in.tolerance),
                     in.verdict.worse ? ": too much" + cause_text(in) : "", other_batch_text(in));
}

/// What the baseline's plan itself would be today: prices and models have changed, not the plan.
std::string today_text(const BaselineInputs& in) {
  const planner::Baseline& b = in.baseline;
  if (!b.today)
    return fmt::format("The baseline's own plan is no longer possible: {}.",
                       b.no_plan.front().what);
  const Forecast& f = b.today->forecast;
  if (!f.feasible) return "The baseline's own plan does not fit in memory with today's catalog.";
  std::string text = fmt::format("The baseline's own plan would take {} and cost {} today",
                                 mean_time(f.time_seconds.mean), mean_cost(mean_of(f.cost_usd)));
  if (!b.today->meets_deadline) text += ", and miss the deadline";
  if (!b.today->meets_budget) text += ", and miss the budget";
  text += '.';
  if (b.score_then && (b.seed != in.answer.seed || b.replications != in.answer.replications))
    text += fmt::format(
        " It was forecast with seed {} and {} replications, today's with {} and {}: part of the "
        "difference is chance.",
        b.seed, format_count(b.replications), in.answer.seed, format_count(in.answer.replications));
  return text;
}

}  // namespace

std::string baseline_verdict(const BaselineInputs& in) { return verdict_text(in); }

std::string baseline_text(const BaselineInputs& in) {
  std::string out =
      "\nAgainst the baseline\n  " + verdict_text(in) + "\n  " + today_text(in) + "\n";
  if (in.since != nullptr) out += lock_change_text(*in.since, 2);
  for (const BaselineRow& r : rows_of(in)) {
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
                                in.verdict.fails() ? "worse than the baseline"
                                : in.verdict.worse ? "worse than the baseline, not by an edit"
                                                   : "within tolerance",
                                markdown_safe(verdict_text(in)), markdown_safe(today_text(in)));
  if (in.since != nullptr) out += lock_change_markdown(*in.since) + "\n";
  out += markdown_header({"", "baseline", "today"});
  for (const BaselineRow& r : rows_of(in)) {
    const std::string now = markdown_safe(r.now);
    out += markdown_row(
        {r.what, markdown_safe(r.before), r.before == r.now ? now : "**" + now + "**"});
  }
  const std::string command =
      in.answer.file.empty() ? "reckon plan" : "reckon plan " + shell_file(in.answer.file);
  return out + fmt::format("\n{} replications, seed {}; {}.\n",
                           format_count(in.answer.replications), in.answer.seed,
                           markdown_code(command));
}

}  // namespace reckon
