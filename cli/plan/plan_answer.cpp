#include "cli/plan/plan_answer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sim/accuracy/plan_evidence.h"

namespace reckon::cli {
namespace {

constexpr int kPlansShown = 5;

/// The setting's, telling `show` how far the search is.
planner::PlannerOptions watched(const PlanSetting& s,
                                const std::function<void(const std::string&)>& show) {
  planner::PlannerOptions how = s.how;
  if (show)
    how.progress = [show](const planner::SearchProgress& p) {
      std::string text = fmt::format("{} candidates, {} pruned, {} in the final rounds",
                                     p.considered, p.pruned, p.racing);
      if (std::isfinite(p.best)) text += fmt::format(", best score so far {:.4g}", p.best);
      show(text);
    };
  return how;
}

/// What the assumptions of the first plan do to it, where somebody reads that; no digit of its
/// forecast changes.
void add_effects(const PlanSetting& s, const Plan& best, planner::Answer& answer) {
  if (s.options.format != OutputFormat::json && s.options.memo.empty()) return;
  ForecastOptions how;
  how.seed = answer.seed;
  how.replications = answer.replications;
  how.threads = s.how.threads;
  answer.plans.front().result.forecast = make_forecast(best, s.network, how);
}

}  // namespace

planner::PlannerOptions planner_options(const PlanOptions& options) {
  planner::PlannerOptions how;
  how.keep = std::size_t(options.plans.value_or(kPlansShown));
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  return how;
}

Expected<AnsweredPlan> answer_plan(const PlanSetting& s,
                                   const std::function<void(const std::string&)>& show) {
  auto found = planner::plan(s.question, s.catalog, s.network, watched(s, show));
  if (!found) return tl::unexpected(std::move(found.error()));
  AnsweredPlan out{std::move(*found), std::nullopt};
  planner::explain_choice(s.question, s.catalog, s.network, s.how, out.answer);
  if (out.answer.plans.empty()) return out;
  auto resolved = planner::resolve(s.question, out.answer.plans.front(), s.catalog);
  if (!resolved) return tl::unexpected(std::move(resolved.error()));
  if (s.question.base.evidence != nullptr) add_trial(*resolved, *s.question.base.evidence);
  out.answer.plans.front().result.forecast.evidence = resolved->evidence;
  add_effects(s, *resolved, out.answer);
  out.best = std::move(*resolved);
  return out;
}

}  // namespace reckon::cli
