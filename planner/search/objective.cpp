#include "planner/search/objective.h"

#include <limits>

namespace reckon::planner {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

}  // namespace

double score_of(Objective objective, double time, double cost) {
  switch (objective) {
    case Objective::time:
    case Objective::p95_time:
      return time;
    case Objective::cost_time:
      return time * cost;
    // The work is the same for all, so most throughput for a dollar is least cost.
    case Objective::cost:
    case Objective::throughput_per_dollar:
    case Objective::cost_under_deadline:
    case Objective::p95_cost:
      return cost;
  }
  return kForever;
}

double score(Objective objective, const Forecast& f) {
  if (!f.feasible || f.replications == 0) return kForever;
  const bool p95 = is_of_p95(objective);
  // A life that never ends is cut and would look cheap.
  double cost = kForever;
  if (f.cost_usd && f.unfinished_share == 0) cost = p95 ? f.cost_usd->p95 : f.cost_usd->mean;
  return score_of(objective, p95 ? f.time_seconds.p95 : f.time_seconds.mean, cost);
}

bool is_of_p95(Objective objective) {
  return objective == Objective::p95_cost || objective == Objective::p95_time;
}

bool needs_price(Objective objective) {
  return objective != Objective::time && objective != Objective::p95_time;
}

}  // namespace reckon::planner
