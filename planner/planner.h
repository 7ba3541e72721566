#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/advice.h"
#include "planner/answer/rows.h"
#include "planner/search/race.h"
#include "planner/search/ranked.h"
#include "planner/search/rivals.h"
#include "planner/sensitivity.h"

// `reckon plan`: from a question to ranked plans with their forecasts, and why.
namespace reckon::planner {

enum class LimitKind { deadline, budget, quota, nodes, memory, residency, carbon };
/// "deadline", "max_nodes", "carbon_free": the key of `plan:`.
std::string_view to_text(LimitKind kind);

struct Shortfall {
  std::string of;                // the quota's place
  double asked = 0, needed = 0;  // accelerators
};

/// What a limit would have to become for a plan to fit.
struct Relaxation {
  LimitKind limit = LimitKind::deadline;
  std::string of;  // of a quota its place; of memory "share" where it is one
  /// Seconds, USD, accelerators, nodes, bytes, shares; NaN: the limit is no number.
  double asked = 0, needed = 0;
  RankedPlan plan;              // that then fits
  std::vector<Shortfall> also;  // other quotas that have to give way with it, worst first
};
struct Infeasible {
  std::string reason;                   // the limit that binds, in a sentence
  std::vector<Relaxation> relaxations;  // least first, as a share of what was asked
};

struct Answer {
  std::string scenario;
  Objective objective = Objective::cost;
  std::optional<Limit> deadline, budget;
  std::uint64_t seed = 1;
  int replications = 0;         // of every forecast
  int replications_asked = 0;   // more than that: the default, and the search budget is exhausted
  std::int64_t considered = 0;  // splits x places, with all that were left out
  std::int64_t feasible = 0;    // of them fit in memory, are sold somewhere and within quotas
  std::int64_t lives = 0;       // that were simulated
  RaceResult search;            // counts; `finished` is moved into plans
  std::size_t certain_ranks = 0;
  std::vector<RankedPlan> plans;         // that meet all limits, best first, of equal ones one
  std::vector<BestBy> best_by;           // of those that meet all limits: what `plans` lack
  std::vector<RankedPlan> front;         // fastest first: time against cost, limits or not
  std::vector<RankedPlan> rivals;        // of the first plan, best first: unlike it, limits or not
  std::vector<LeverRival> lever_rivals;  // of the first plan too, where a number changes
  Rejections rejected;
  std::optional<Infeasible> infeasible;  // no plan fits
  std::vector<std::string> assumed;      // what the question did not say
  /// Keys of `plan.vary`: those that had more than one value to choose from, and the others.
  std::vector<std::string> searched, held;
  std::string batch_rule;  // Question's
  std::string file;        // the question's; "": the command line was all of it
  CommandWords words;      // to ask other commands of the same
  // Of explain_choice():
  std::optional<Sensitivity> sensitivity;
  std::vector<Measurement> measurements;  // worth most first
};

struct PlannerOptions {
  std::optional<std::uint64_t> seed;  // the scenario's otherwise
  /// The scenario's otherwise; where neither says a number, as many as the effort does for.
  std::optional<int> replications;
  /// Events that the lives of a search may have in all, about (SpaceOptions).
  double effort = 4e6;  // events
  bool prune = true;    // by bounds; without: to see what they are worth
  int threads = 0;
  std::size_t keep = 5;  // plans in the answer
  /// Up to so many candidates that no bound excludes are all forecast: the answer is exact then.
  std::size_t exact_up_to = 48;
  std::function<void(const SearchProgress&)> progress;
};

/// Errors: the question makes no plan on any hardware, whatever it varies.
Expected<Answer> plan(const Question& question, const Catalog& catalog, const NetworkModel& network,
                      const PlannerOptions& options = {});

/// Adds to an answer with a plan what would change the choice, and what is worth measuring first.
void explain_choice(const Question& question, const Catalog& catalog, const NetworkModel& network,
                    const PlannerOptions& options, Answer& answer);

}  // namespace reckon::planner
