#include "planner/search/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/base/limits.h"
#include "sim/base/parallel.h"

namespace reckon::planner {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// A life that was cut costs what it would have cost until it ended: nobody knows how much.
std::vector<double> costs_with_unfinished(const Forecast& f) {
  std::vector<double> costs = f.costs_usd;
  for (std::size_t k = 0; k < costs.size(); ++k)
    if (!std::isfinite(f.times_seconds[k])) costs[k] = kInfinite;
  return costs;
}

bool within(const std::optional<double>& most, const std::optional<Quantiles>& of) {
  return !most || (of && of->mean <= *most);
}

bool keeps_emissions(const Question& question, const Forecast& f) {
  const auto joules = f.energy ? std::optional(f.energy->joules) : std::nullopt;
  return within(question.energy_joules, joules) &&
         within(question.co2_grams, f.energy ? f.energy->co2_grams : std::nullopt);
}

}  // namespace

bool is_better(const Evaluated& a, const Evaluated& b) {
  const auto key = [](const Evaluated& e) {
    return std::tuple(!e.meets_all(), e.score, e.forecast.time_seconds.mean);
  };
  if (key(a) != key(b)) return key(a) < key(b);
  return texts(a.changes) < texts(b.changes);  // any order that is always the same
}

Evaluated judged(const Question& question, Forecast forecast) {
  Evaluated e;
  e.forecast = std::move(forecast);
  const Forecast& f = e.forecast;
  e.score = score(question.objective, f);
  if (!f.feasible) e.refused = "does not fit in memory";
  if (question.deadline && f.feasible) {
    e.late = held_against(*question.deadline, f.time_seconds, f.times_seconds);
    e.meets_deadline = e.late <= question.deadline->value;
  }
  if (question.budget && f.feasible) {
    const bool known = f.cost_usd.has_value();
    const double mean = known && f.unfinished_share == 0 ? f.cost_usd->mean : kInfinite;
    e.dear =
        known ? held_against(*question.budget, Quantiles{mean, 0, 0, 0}, costs_with_unfinished(f))
              : kInfinite;
    e.meets_budget = e.dear <= question.budget->value;
  }
  if (f.feasible) e.meets_emissions = keeps_emissions(question, f);
  return e;
}

Forecast Evaluator::forecast_of(const Plan& plan, int replications, int threads) const {
  ForecastOptions how;
  how.replications = replications;
  how.seed = s_.seed;
  how.threads = threads;
  how.assumption_effects = false;
  return make_forecast(plan, s_.network, how);
}

Evaluated Evaluator::evaluate_one(const Candidate& c, int replications, int threads) const {
  Evaluated e;
  const auto refuse = [&e](std::string why) {
    e = {};
    e.refused = std::move(why);
    e.score = kInfinite;
  };
  try {
    const auto plan = planner::plan_of(s_.question, s_.catalog, s_.space, c);
    if (plan)
      e = judged(s_.question, forecast_of(*plan, replications, threads));
    else
      refuse(plan.error().empty() ? "cannot be planned" : plan.error().front().what);
  } catch (const Overflow& beyond) {  // the others may do without such numbers
    refuse(beyond.what());
  } catch (const TooMuchWork& beyond) {
    refuse(beyond.what());
  }
  e.candidate = c;
  e.changes = changes_of(s_.question, s_.space, c);
  return e;
}

std::vector<Evaluated> Evaluator::evaluate(std::span<const Candidate> candidates,
                                           int replications) {
  std::vector<Evaluated> out(candidates.size());
  const int inner = candidates.size() > 1 ? 1 : s_.threads;
  parallel_for(candidates.size(), s_.threads,
               [&](std::size_t k) { out[k] = evaluate_one(candidates[k], replications, inner); });
  lives_ += std::int64_t(candidates.size()) * replications;
  return out;
}

}  // namespace reckon::planner
