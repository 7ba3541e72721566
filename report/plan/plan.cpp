#include "report/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/explain/evidence.h"
#include "report/plan/parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using planner::Answer;
using planner::RankedPlan;

std::string best_in_words(planner::Objective objective) {
  switch (objective) {
    case planner::Objective::cost:
    case planner::Objective::cost_under_deadline:
      return "lowest mean cost";
    case planner::Objective::throughput_per_dollar:
      return "most throughput for a dollar";
    case planner::Objective::time:
      return "shortest mean time";
    case planner::Objective::cost_time:
      return "lowest product of mean cost and mean time";
    case planner::Objective::p95_cost:
      return "lowest 95th percentile of the cost";
    case planner::Objective::p95_time:
      return "lowest 95th percentile of the time";
  }
  return "";
}

/// How the search went, below the answer.
std::string search_text(const Answer& a, int width) {
  std::string text = fmt::format("{} candidates, {} feasible; {} replications simulated. ",
                                 format_count(double(a.considered)),
                                 format_count(double(a.feasible)), format_count(double(a.lives)));
  if (a.search.exact)
    text += a.plans.empty()
                ? "Every candidate was simulated, or a lower bound proves that it does "
                  "not fit. "
                : "No other candidate of this space is better: each was simulated, or a "
                  "lower bound proves it worse. ";
  else
    text += fmt::format(
        "{} candidates were ranked by the step model or a few replications, not simulated in "
        "full. ",
        format_count(double(a.search.not_tried + a.search.outrun)));
  if (a.plans.size() > 1)
    text +=
        a.certain_ranks == 0
            ? "The first two plans do not differ at 95 % confidence."
            : fmt::format("The order holds at 95 % confidence down to rank {}.", a.certain_ranks);
  if (a.replications < a.replications_asked)
    text += fmt::format(
        " Search budget exhausted: each plan has {1} of {0} replications, since each has so many "
        "interruptions (`--replications {2}` forces all).",
        format_count(a.replications_asked), format_count(a.replications), a.replications_asked);
  std::string out = "\nSearch\n";
  add_lines(out, "  ", text, width);
  add_lines(
      out, "  ",
      fmt::format("Searched: {}.",
                  a.searched.empty() ? "nothing" : fmt::format("{}", fmt::join(a.searched, ", "))),
      width);
  add_lines(out, "  ", fmt::format("Held fixed: {}.", fmt::join(a.held, ", ")), width);
  return out;
}

std::string cost_text(const Forecast& f) { return f.cost_usd ? usd_range(*f.cost_usd) : "unknown"; }

/// The mean, as plans are ranked by it and as the front shows it, and the range.
std::string mean_cost_text(const Forecast& f) {
  if (!f.cost_usd) return "unknown";
  Quantiles around_mean = *f.cost_usd;
  around_mean.p50 = around_mean.mean;
  return usd_range(around_mean);
}

std::string region_text(const RankedPlan& p) {
  const std::string& where = p.offer.zone.empty() ? p.offer.region : p.offer.zone;
  return fmt::format("{}{}{}", to_text(p.hardware.provider), where.empty() ? "" : " ", where);
}

/// "sharded, ZeRO-1, batch 4 or mirrored, batch 4": of equal plans the ways to divide the work.
std::string strategies_text(const RankedPlan& p) {
  std::vector<std::string> words{strategy_text(p.split)};
  for (const RankedPlan& other : p.equals)
    if (const std::string word = strategy_text(other.split); std::ranges::count(words, word) == 0)
      words.push_back(word);
  constexpr std::size_t kShown = 3;
  if (words.size() <= 1) return words.front();
  const std::size_t shown = std::min(kShown, words.size() - 1);
  std::string text =
      fmt::format("{} (within 1 %: {}", words.front(),
                  fmt::join(words.begin() + 1, words.begin() + 1 + long(shown), "; "));
  if (words.size() - 1 > shown) text += fmt::format("; {} more", words.size() - 1 - shown);
  return text + ")";
}

/// What a row leaves out; of the first in full.
std::string details_text(const RankedPlan& p, bool in_full) {
  const Forecast& f = p.result.forecast;
  std::string text = fmt::format("{}; {} samples a step; ", strategies_text(p),
                                 format_count(double(p.split.layout.global_batch())));
  if (in_full) {
    text += fmt::format("{}, bound by {}; goodput {}, {:.1f} interruptions",
                        throughput_text(f.step, f.accelerators, f.tokens_per_sample),
                        to_text(f.step.bottleneck), format_percent(f.goodput.p50),
                        f.interruptions_total.mean);
    if (f.energy && f.energy->co2_grams) text += ", CO2 " + format_mass(f.energy->co2_grams->p50);
  } else {
    text += rate_text(f.step.samples_per_second, f.tokens_per_sample);
  }
  if (const std::string checkpoints = checkpoint_text(p.hardware); !checkpoints.empty())
    text += "; " + checkpoints;
  if (!p.hardware.server_machine.empty() && p.split.parameter_servers > 0)
    text += fmt::format("; servers {} x {}", p.split.parameter_servers, p.hardware.server_machine);
  return text + "; memory " + memory_text(f.memory);
}

/// P(deadline and budget are kept), over the replications.
std::string within_limits(const Answer& a, const RankedPlan& p) {
  const Forecast& f = p.result.forecast;
  const std::size_t n = f.times_seconds.size();
  if (n == 0 || (a.budget && f.costs_usd.size() != n)) return "-";
  std::size_t within = 0;
  for (std::size_t k = 0; k < n; ++k)
    within += (!a.deadline || f.times_seconds[k] <= a.deadline->value) &&
              (!a.budget || f.costs_usd[k] <= a.budget->value);
  return probability_text(double(within) / double(n), int(n));
}

std::string plans_text(const Answer& a, int width) {
  const bool limited = a.deadline || a.budget;
  std::string out = "\n";
  Columns rows;
  std::vector<std::string> head{"",       "plan", "",    "where",
                                "bought", "p50",  "p95", "mean cost (p5 .. p95)"};
  if (limited) head.emplace_back(a.deadline && a.budget ? "within both" : "within limit");
  rows.row(std::move(head));
  std::string details;
  std::size_t number = 0;
  const auto add = [&](const std::string& what, const RankedPlan& p) {
    const Forecast& f = p.result.forecast;
    const std::string label = fmt::format("{}", ++number);
    std::vector<std::string> cells{label,
                                   what,
                                   planner::hardware_text(p.hardware, p.split.nodes),
                                   region_text(p),
                                   planner::bought_text(p.offer, p.split.nodes),
                                   time_value(Seconds{f.time_seconds.p50}),
                                   time_value(Seconds{f.time_seconds.p95}),
                                   mean_cost_text(f)};
    if (limited) cells.push_back(within_limits(a, p));
    rows.row(std::move(cells));
    add_lines(details, fmt::format("  {:<3}", label), details_text(p, number == 1), width);
  };
  for (std::size_t k = 0; k < a.plans.size(); ++k)
    add(k == 0 ? "best" : fmt::format("rank {}", k + 1), a.plans[k]);
  for (const planner::BestBy& best : a.best_by) {
    std::string what = best.what;
    std::ranges::replace(what, '_', ' ');
    add(what, best.plan);
  }
  out += rows.text();
  const std::string& dated = a.plans.front().result.forecast.prices_as_of;
  add_lines(
      out, "  ",
      fmt::format("Ranked by {}. p50, p95: percentiles of the time to the end. {} replications, "
                  "seed {}{}",
                  best_in_words(a.objective), format_count(a.replications), a.seed,
                  dated.empty() ? "" : "; prices of the first as of " + dated),
      width);
  std::set<std::string> said;  // a price that was paid beforehand never stands alone
  for (const RankedPlan& p : a.plans)
    for (const PurchaseForecast& purchase : p.result.forecast.purchases)
      if (const std::string text = text_of(purchase); !text.empty() && said.insert(text).second)
        add_lines(out, "  ", text, width);
  return out + "\n" + details;
}

std::string why_text(const Answer& a, int width) {
  const RankedPlan& best = a.plans.front();
  std::string out = "\nWhy the first\n";
  if (best.binding.empty())
    add_lines(out, "  ",
              a.search.exact
                  ? "No limit binds: it is the best of the space searched."
                  : "No limit binds: nothing that was simulated and misses one is better.",
              width);
  for (const std::string& limit : best.binding)
    add_lines(out, "  ", fmt::format("The {} binds: without it there is a better plan.", limit),
              width);
  const Forecast& f = best.result.forecast;
  if (f.evidence) add_lines(out, "  ", evidence_sentences(*f.evidence), width);
  const auto against = [&](std::string what, const RankedPlan& p) {
    what.front() = 'N';
    const Forecast& o = p.result.forecast;
    const std::string cost =
        o.cost_usd && f.cost_usd ? ", cost " + signed_usd(o.cost_usd->mean - f.cost_usd->mean) : "";
    add_lines(out, "  ",
              fmt::format("{}: {}; time {}{}{}", what, told_apart(p, best),
                          signed_duration(o.time_seconds.mean - f.time_seconds.mean), cost,
                          p.result.meets_all() ? "" : " (misses a limit)"),
              width);
  };
  for (const Alternative& next : alternatives_of(a, 2))
    if (next.what.starts_with("next")) against(next.what, *next.plan);
  return out;
}

std::string rejected_text(const Answer& a) {
  if (a.rejected.empty()) return "";
  std::vector<std::pair<std::int64_t, std::string>> counts;
  for (const auto& [reason, count] : a.rejected) counts.emplace_back(-count, reason);
  std::ranges::sort(counts);
  Columns rows;
  for (const auto& [count, reason] : counts) rows.row({format_count(double(-count)), reason});
  return "\nLeft out\n" + rows.text();
}

/// A little more than is needed: three digits of it, typed as the limit, are then enough.
constexpr double kRoundedUp = 1.005;

/// "A deadline of 35.7 min instead of 20.0 min (+77.4 %)".
std::string way_out(const planner::Relaxation& r) {
  using planner::LimitKind;
  const auto instead = [&](const std::string& what, const std::string& needed,
                           const std::string& asked) {
    return fmt::format("A {} of {} instead of {} ({:+.1f} %) would be met by", what, needed, asked,
                       100 * (r.needed / r.asked - 1));
  };
  switch (r.limit) {
    case LimitKind::deadline:
      return instead("deadline", time_value(Seconds{kRoundedUp * r.needed}),
                     time_value(Seconds{r.asked}));
    case LimitKind::budget:
      return instead("budget", usd_value(kRoundedUp * r.needed), usd_value(r.asked));
    case LimitKind::quota: {
      std::string text =
          fmt::format("A quota of {:.0f} instead of {:.0f} for {}", r.needed, r.asked, r.of);
      for (const planner::Shortfall& other : r.also)
        text += fmt::format(", with one of {:.0f} instead of {:.0f} for {}", other.needed,
                            other.asked, other.of);
      return text + (r.also.empty() ? " would do for" : ", would do for");
    }
    case LimitKind::nodes:
      return fmt::format("With {:.0f} nodes instead of at most {:.0f} there is", r.needed, r.asked);
    case LimitKind::memory:
      if (!r.of.empty())
        return fmt::format("With {:.1f} % of an accelerator's memory instead of {:.1f} % there is",
                           std::ceil(1000 * r.needed) / 10, 100 * r.asked);
      return fmt::format("With {} of an accelerator's memory instead of {} there is",
                         format_bytes(Bytes{kRoundedUp * r.needed}), format_bytes(Bytes{r.asked}));
    case LimitKind::residency:
      return "Without the limit on residency there is";
    case LimitKind::carbon:
      return fmt::format("With {:.3g} % of the power free of carbon instead of {:.3g} % there is",
                         std::floor(1000 * r.needed) / 10, 100 * r.asked);
  }
  return "";
}

std::string infeasible_text(const Answer& a, int width) {
  const planner::Infeasible& none = *a.infeasible;
  std::string out = "\nNo plan fits\n";
  add_lines(out, "  ", none.reason + ".", width);
  for (const planner::Relaxation& r : none.relaxations)
    add_lines(
        out, "  ",
        fmt::format("{} {}; {}: {}, {}", way_out(r), place_text(r.plan),
                    strategy_text(r.plan.split), time_range(r.plan.result.forecast.time_seconds),
                    cost_text(r.plan.result.forecast)),
        width);
  return out;
}

}  // namespace

void add_lines(std::string& out, const std::string& head, const std::string& text, int width) {
  const auto lines = wrap(text, width - int(head.size()));
  for (std::size_t l = 0; l < lines.size(); ++l)
    out += (l == 0 ? head : std::string(head.size(), ' ')) + lines[l] + "\n";
}

std::string question_in_words(const Answer& a) {
  std::string text = best_in_words(a.objective);
  if (a.deadline) text += ", deadline " + a.deadline->text;
  if (a.budget) text += ", budget " + a.budget->text;
  return text;
}

std::vector<Alternative> alternatives_of(const Answer& a, std::size_t most) {
  std::vector<Alternative> out;
  if (a.plans.empty()) return out;
  const RankedPlan& best = a.plans.front();
  const Forecast& f = best.result.forecast;
  const RankedPlan *cheaper = nullptr, *faster = nullptr;
  for (const RankedPlan& p : a.front) {  // fastest first, dearest first
    const Quantiles& cost = *p.result.forecast.cost_usd;
    if (p.result.forecast.time_seconds.mean < f.time_seconds.mean) faster = &p;
    if (!cheaper && f.cost_usd && cost.mean < f.cost_usd->mean) cheaper = &p;
  }
  const auto add = [&](const char* what, const RankedPlan* p) {
    if (p == nullptr || out.size() == most) return;
    const auto is_it = [&](const Alternative& other) {
      return planner::same_changes(other.plan->result.changes, p->result.changes);
    };
    const auto equals_best = [&](const RankedPlan& other) {
      return planner::same_changes(other.result.changes, p->result.changes);
    };
    if (!equals_best(best) && std::ranges::none_of(best.equals, equals_best) &&
        std::ranges::none_of(out, is_it))
      out.push_back({what, p});
  };
  if (f.cost_usd) {
    add("next cheaper", cheaper);
    add("next faster", faster);
  }
  for (const RankedPlan& p : a.rivals)
    add(p.result.meets_all() ? "next best" : "misses a limit", &p);
  return out;
}

std::string place_text(const RankedPlan& p) {
  std::string text = planner::hardware_text(p.hardware, p.split.nodes);
  text += fmt::format(", {}, {}", region_text(p), planner::bought_text(p.offer, p.split.nodes));
  if (!p.hardware.server_machine.empty() && p.split.parameter_servers > 0)
    text += fmt::format(", servers {} x {}", p.split.parameter_servers, p.hardware.server_machine);
  for (const std::string& more : {checkpoint_text(p.hardware), planner::restart_words(p.offer)})
    if (!more.empty()) text += ", " + more;
  return text;
}

std::string plan_table(const Answer& a, int width) {
  std::string out = fmt::format("{}: {}\n", a.scenario, question_in_words(a));
  std::string assumed;
  for (const std::string& line : a.assumed)
    add_lines(assumed, "  ", "Assumed: " + line + ".", width);
  add_lines(assumed, "  ", a.batch_rule + ".", width);
  if (a.infeasible)
    return out + infeasible_text(a, width) + "\n" + assumed + search_text(a, width) +
           rejected_text(a);
  return out + plans_text(a, width) + "\n" + assumed + why_text(a, width) +
         sensitivity_text(a, width) + measurements_text(a, width) + next_text(a) +
         front_text(a, width) + search_text(a, width) + rejected_text(a);
}

}  // namespace reckon
