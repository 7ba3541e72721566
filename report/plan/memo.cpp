#include "report/plan/memo.h"

#include <fmt/format.h>

#include "report/memo/memo.h"
#include "report/memo/parts.h"
#include "report/plan/parts.h"
#include "report/plan/plan.h"
#include "report/table.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using planner::Answer;
using planner::RankedPlan;

constexpr std::size_t kAlternatives = 3;

std::string question(const PlanMemoInputs& m) {
  std::string out = "## Question\n\n";
  if (!m.question.empty()) out += markdown_safe(m.question) + "\n\n";
  out += fmt::format("Best is the {}.\n\n", markdown_safe(question_in_words(m.answer)));
  for (const std::string& assumed : m.answer.assumed)
    out += fmt::format("Assumed: {}.\n\n", markdown_safe(assumed));
  out += fmt::format("{}.\n\n", markdown_safe(m.answer.batch_rule));
  return out;
}

std::string recommendation(const PlanMemoInputs& m) {
  const RankedPlan& best = m.answer.plans.front();
  const Forecast& f = m.forecast;
  std::string out = fmt::format(
      "## Recommendation\n\n**{}**, {}: **{}**, **{}** (median; in brackets the 5th to the 95th "
      "percentile).\n\n",
      markdown_safe(place_text(best)), markdown_safe(planner::strategy_text(best.split)),
      time_range(f.time_seconds), memo_cost(f));
  out += fmt::format("{} of the accelerators' time is training; a step is bound by {}.",
                     format_percent(f.goodput.mean), to_text(f.step.bottleneck));
  for (const std::string& limit : best.binding)
    out += fmt::format(" The {} binds: without it there is a better plan.", limit);
  const Answer& a = m.answer;
  out += fmt::format("\n\nOf {} candidates; {}.\n\n", format_count(double(a.considered)),
                     a.search.exact
                         ? "each was simulated, or a lower bound proves it worse"
                         : "not all that no bound excludes were simulated to the end, the rest was "
                           "ranked by the step model or a few replications");
  return out;
}

std::string plan_alternatives(const PlanMemoInputs& m) {
  const auto some = alternatives_of(m.answer, kAlternatives);
  std::string out = "## Alternatives\n\n";
  if (some.empty()) return out + "None was forecast.\n\n";
  out += markdown_header({"", "plan", "time", "cost", "against the recommendation"});
  const Forecast& f = m.forecast;
  for (const Alternative& one : some) {
    const Forecast& o = one.plan->result.forecast;
    std::string gives = signed_duration(o.time_seconds.mean - f.time_seconds.mean);
    if (o.cost_usd && f.cost_usd) gives += ", " + signed_usd(o.cost_usd->mean - f.cost_usd->mean);
    if (!one.plan->result.meets_deadline) gives += ", misses the deadline";
    if (!one.plan->result.meets_budget) gives += ", misses the budget";
    out += markdown_row(
        {one.what,
         markdown_safe(place_text(*one.plan) + "; " + planner::strategy_text(one.plan->split)),
         time_range(o.time_seconds), memo_cost(o), gives});
  }
  return out + "\n";
}

std::string changes(const Answer& a) {
  const auto sentences = changes_of_choice(a);
  if (sentences.empty()) return "";
  std::string out = "## What would change the choice\n\n";
  for (const std::string& sentence : sentences) out += "- " + markdown_safe(sentence) + "\n";
  return out + "\n";
}

std::string measuring(const Answer& a) {
  const auto advice = advice_of(a);
  if (advice.empty()) return "";
  std::string out = "## What to measure first\n\n";
  for (const Advice& one : advice) {
    out += "- " + markdown_safe(one.text);
    if (!one.command.empty()) out += " " + markdown_code(one.command);
    out += "\n";
  }
  return out + "\n";
}

}  // namespace

std::string plan_memo(const PlanMemoInputs& m) {
  return fmt::format("# {}\n\n", markdown_safe(m.answer.scenario)) + question(m) +
         recommendation(m) + plan_alternatives(m) + changes(m.answer) + measuring(m.answer) +
         memo_risks(m.forecast) + memo_assumptions(m.forecast) + memo_prices(m.plan, m.forecast) +
         memo_provenance(m.forecast);
}

}  // namespace reckon
