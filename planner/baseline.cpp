#include "planner/baseline.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/one_job.h"

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

Diagnostics wrong(const Baseline& b, std::string what, std::string hint) {
  return {{Severity::error, {b.name, 0, 0}, std::move(what), std::move(hint)}};
}

/// In a word what the plan's job is, so that two plans are for the same thing: model, data and,
/// where the batch does not decide it, samples.
std::string work_of(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  std::string text = fmt::format("{} on {}", job.model.name(), job.dataset.name);
  if (!job.convergence) text += fmt::format(", {:.6g} samples", job.total_samples);
  return text;
}

}  // namespace

Expected<Baseline> read_baseline(const Question& question, ScenarioFile file,
                                 const Catalog& catalog) {
  Baseline b;
  b.name = file.places.file;
  b.replications = file.scenario.forecast.replications;
  b.seed = file.scenario.forecast.seed;
  if (const auto& planned = file.scenario.planned) {
    b.time_then = said(*planned, "time_seconds.mean");
    b.cost_then = said(*planned, "cost_usd.mean");
    b.score_then = score_said(question.objective, *planned);
    b.catalog_then = planned->catalog_digest;
    b.prices_then = planned->prices_as_of;
    b.seed = planned->seed;
  }
  auto plan = planned(question.base, file, catalog);
  if (!plan)
    b.no_plan = std::move(plan.error());
  else if (auto several = why_not_one_job(*plan, file.places, "a baseline"))
    return tl::unexpected(Diagnostics{std::move(*several)});
  else
    b.plan = std::move(*plan);
  if (!b.plan && !b.score_then) return tl::unexpected(std::move(b.no_plan));
  return b;
}

Expected<void> judge_today(Baseline& baseline, const Question& question, const Answer& answer,
                           const Plan* best, const NetworkModel& network, int threads) {
  if (!baseline.plan) return {};
  if (best != nullptr && work_of(*best) != work_of(*baseline.plan))
    return tl::unexpected(wrong(baseline,
                                fmt::format("the baseline trains {}, the question {}",
                                            work_of(*baseline.plan), work_of(*best)),
                                "make a new baseline with --out"));
  ForecastOptions how;
  how.replications = answer.replications;
  how.seed = answer.seed;
  how.threads = threads;
  how.assumption_effects = false;
  baseline.today = judged(question, make_forecast(*baseline.plan, network, how));
  return {};
}

BaselineVerdict held_against_baseline(const Answer& answer, const Baseline& baseline,
                                      double tolerance, const Swaps* swaps) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  BaselineVerdict v;
  v.before = swaps != nullptr      ? swaps->then
             : baseline.score_then ? *baseline.score_then
             : baseline.today      ? baseline.today->score
                                   : kNever;
  v.now = answer.plans.empty() ? kNever : answer.plans.front().result.score;
  v.change = v.now == v.before ? 0 : v.now / v.before - 1;
  const auto holds = [&](double score) { return score <= v.before * (1 + tolerance); };
  v.worse = answer.plans.empty() || !holds(v.now);
  if (v.worse && swaps != nullptr) v.cause = first_to_break(*swaps, holds);
  return v;
}

}  // namespace reckon::planner
