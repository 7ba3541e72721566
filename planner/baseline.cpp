#include "planner/baseline.h"

#include <cmath>
#include <limits>

#include "sim/base/unit_text.h"

namespace reckon::planner {
namespace {

/// A number of the `planned:` block's forecast.
std::optional<double> said(const PlannedSpec& planned, const std::string& path) {
  const auto found = planned.forecast.find(path);
  if (found == planned.forecast.end()) return std::nullopt;
  const auto value = parse_number(found->second);
  return value && std::isfinite(*value) ? std::optional(*value) : std::nullopt;
}

std::optional<double> score_said(Objective objective, const PlannedSpec& planned) {
  const auto time = said(planned, "time_seconds.mean"), cost = said(planned, "cost_usd.mean");
  switch (objective) {
    case Objective::cost:
    case Objective::throughput_per_dollar:
    case Objective::cost_under_deadline:
      return cost;
    case Objective::time:
      return time;
    case Objective::cost_time:
      return time && cost ? std::optional(*time * *cost) : std::nullopt;
    case Objective::p95_cost:
      return said(planned, "cost_usd.p95");
    case Objective::p95_time:
      return said(planned, "time_seconds.p95");
  }
  return std::nullopt;
}

}  // namespace

Expected<Baseline> read_baseline(const Question& question, ScenarioFile file,
                                 const Catalog& catalog, const NetworkModel& network,
                                 const Answer& answer, int threads) {
  auto plan = make_plan(file, catalog);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  Baseline b;
  b.name = file.places.file;
  b.plan = std::move(*plan);
  if (const auto& planned = file.scenario.planned) {
    b.time_then = said(*planned, "time_seconds.mean");
    b.cost_then = said(*planned, "cost_usd.mean");
    b.score_then = score_said(question.objective, *planned);
    b.catalog_then = planned->catalog_digest;
    b.prices_then = planned->prices_as_of;
  }
  ForecastOptions how;
  how.replications = answer.replications;
  how.seed = answer.seed;
  how.threads = threads;
  how.assumption_effects = false;
  b.today = judged(question, make_forecast(b.plan, network, how));
  return b;
}

BaselineVerdict held_against_baseline(const Answer& answer, const Baseline& baseline,
                                      double tolerance) {
  BaselineVerdict v;
  v.before = baseline.score_then.value_or(baseline.today.score);
  v.now = answer.plans.empty() ? std::numeric_limits<double>::infinity()
                               : answer.plans.front().result.score;
  v.change = v.now / v.before - 1;
  v.worse = !(v.now <= v.before * (1 + tolerance));
  return v;
}

}  // namespace reckon::planner
