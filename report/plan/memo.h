#pragma once
#include <string>

#include "planner/baseline.h"
#include "planner/planner.h"
#include "report/check/lock_change.h"

// Markdown pages of `reckon plan`.
namespace reckon {

struct PlanMemoInputs {
  const planner::Answer& answer;  // with a plan
  const Plan& plan;               // the first, in full
  const Forecast& forecast;       // of it, with the effects of its assumptions
  std::string question;           // of the scenario's opening comment; ""
};
/// `--memo FILE.md`: one page: the question, the recommendation with its range, three alternatives
/// and what each gives up, what would change the choice, risks, assumptions with their effect in
/// money, sources and dates of prices.
std::string plan_memo(const PlanMemoInputs& memo);

struct BaselineInputs {
  const planner::Answer& answer;
  const planner::Baseline& baseline;
  const planner::BaselineVerdict& verdict;
  double tolerance = 0;               // share: 0.03 is 3 %
  const Plan* best = nullptr;         // today's; nullptr: no plan fits
  const LockChange* since = nullptr;  // the baseline is a lock: what changed, and whose it is
};
/// `--baseline`: what is different, as text for a terminal and as Markdown for a comment.
std::string baseline_text(const BaselineInputs& inputs);
/// Of it the sentence that says which is better.
std::string baseline_verdict(const BaselineInputs& inputs);
std::string baseline_markdown(const BaselineInputs& inputs);

}  // namespace reckon
