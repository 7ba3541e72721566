#pragma once
#include <functional>
#include <optional>
#include <string>

#include "cli/load/load.h"
#include "cli/plan/plan_options.h"
#include "planner/planner.h"

namespace reckon::cli {

/// All that one question is answered with.
struct PlanSetting {
  const PlanOptions& options;
  const planner::Question& question;
  const LoadedCatalog& catalog;
  const NetworkModel& network;
  planner::PlannerOptions how;
};
/// Plans, seed, replications and threads of the options.
planner::PlannerOptions planner_options(const PlanOptions& options);

struct AnsweredPlan {
  planner::Answer answer;
  std::optional<Plan> best;  // the first plan in full; nullopt: none fits
};
/// The search, what would change its choice, and the first plan with the effects of its
/// assumptions where the options ask for them. `show` is told how far it is; empty: nobody.
Expected<AnsweredPlan> answer_plan(const PlanSetting& setting,
                                   const std::function<void(const std::string&)>& show = {});

}  // namespace reckon::cli
