#pragma once
#include "cli/load/load.h"
#include "cli/plan/plan_options.h"
#include "planner/baseline.h"
#include "planner/lock/lock.h"
#include "planner/planner.h"
#include "report/check/lock_change.h"

// `reckon plan --lock`, and `--baseline` of what it wrote.
namespace reckon::cli {

/// A question with what answers it: all stay.
struct LockedQuestion {
  const PlanOptions& options;
  const planner::Question& question;
  const LoadedCatalog& catalog;
  const NetworkModel& network;
  const planner::PlannerOptions& how;
};

/// Writes the lock beside the question's file: the best plan, and the scenario's own forecast where
/// it is a plan without what varies.
Expected<void> write_plan_lock(const LockedQuestion& of, const planner::Answer& answer,
                               const Plan& best);

struct AttributedScore {
  planner::Swaps score;
  LockChange since;
};
/// Searches again with prices and evidence of the lock, as far as they changed.
Expected<AttributedScore> attribute_score(const LockedQuestion& of, const planner::Lock& lock,
                                          const planner::Answer& answer);

}  // namespace reckon::cli
