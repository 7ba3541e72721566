#include "planner/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/base/limits.h"
#include "sim/base/overflow.h"
#include "sim/base/random.h"

namespace reckon::planner {
namespace {

constexpr int kQuickLook = 40, kSecondLook = 200;
constexpr std::size_t kLookedAtAgain = 6;

/// Standard normal scores of n replications, each of the n equal parts of the law once, in an order
/// that nothing else of the replications knows (a lattice by the golden ratio).
double lattice_score(std::size_t k, std::size_t n) {
  const double place = std::fmod(double(k + 1) * 0.6180339887498949, 1.0);
  return normal_quantile(std::clamp(place, 0.5 / double(n), 1 - 0.5 / double(n)));
}

std::optional<Remedy> remedy_of(const RemedyQuestion& q, const std::vector<Change>& changes,
                                const NetworkModel& network, int replications) {
  try {
    auto here = q.here(changes);
    if (!here) return std::nullopt;
    Remedy remedy;
    remedy.changes = changes;
    remedy.what = what_changes(q.now, here->plan);
    if (remedy.what.empty()) return std::nullopt;
    remedy.plan = here->plan;
    RestOfRun rest =
        rest_of_run(std::move(*here), q.so_far.steps_left, network, replications, q.seed);
    if (rest.seconds.empty()) return std::nullopt;
    const double before = (q.so_far.elapsed + q.so_far.stop).count();
    for (double& s : rest.seconds) s += before;
    for (double& usd : rest.usd) usd += q.so_far.spent.v;
    remedy.outlook = outlook_of(rest.seconds, rest.usd, q.limits);
    return remedy;
  } catch (const Overflow&) {
    return std::nullopt;
  } catch (const TooMuchWork&) {
    return std::nullopt;
  }
}

void sort_by_help(std::vector<Remedy>& found, const Plan& now) {
  constexpr double kAlike = 0.02, kGain = 1.05;
  const auto key = [&](const Remedy& r) {
    const RunOutlook& o = r.outlook;
    const PlannedStrategy& strategy = r.plan.only_job().strategy;
    const double amount = o.cost_usd ? o.cost_usd->mean : double(strategy.accelerators());
    const bool same = same_layout(strategy, now.only_job().strategy);
    return std::tuple(std::round(o.miss / kAlike), same ? amount : kGain * amount,
                      o.time_seconds.mean, texts(r.changes));
  };
  std::ranges::sort(found, {}, key);
}

}  // namespace

RunOutlook outlook_of(const std::vector<double>& times, const std::vector<double>& costs,
                      const RunLimits& limits) {
  RunOutlook o;
  o.time_seconds = quantiles(times);
  if (!costs.empty()) o.cost_usd = quantiles(costs);
  double missed = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    const bool late = limits.deadline && times[k] > limits.deadline->count();
    const bool dear = limits.budget && (costs.empty() || costs[k] > limits.budget->v);
    if (late || dear) ++missed;
  }
  o.miss = missed / double(times.size());
  return o;
}

RestOfRun rest_of_run(PlanHere here, std::int64_t steps, const NetworkModel& network,
                      int replications, std::uint64_t seed) {
  Plan& plan = here.plan;
  PlannedWorkload& job = plan.only_job();
  job.evaluations *= double(steps) / double(std::max<std::int64_t>(1, job.steps));
  job.steps = steps;
  job.total_samples = double(steps) * double(job.global_batch);
  ForecastOptions how;
  how.replications = replications;
  how.seed = seed;
  how.threads = 1;  // beside the run
  how.assumption_effects = false;
  const Forecast f = make_forecast(plan, network, how);
  RestOfRun rest;
  if (!f.feasible) return rest;
  const auto share = [&](Badput cause) { return f.badput[std::size_t(cause)]; };
  const double beside = f.goodput.mean > 0
                            ? (share(Badput::checkpoint_save) + share(Badput::checkpoint_restore) +
                               share(Badput::lost_work)) /
                                  f.goodput.mean
                            : 0;
  const std::size_t n = f.times_seconds.size();
  const Seconds trained =
      double(f.steps) * f.step.step + evaluation_time(plan, job, f.step) * job.evaluations;
  const double work = trained.count() * here.step_factor * (1 + beside);
  for (std::size_t k = 0; k < n; ++k) {
    const double time = f.times_seconds[k];
    const bool ends = std::isfinite(time) && time > 0;
    const double drawn = std::exp(here.step_spread * lattice_score(k, n));
    rest.seconds.push_back(ends ? f.start_seconds[k] + work * drawn : time);
    if (f.costs_usd.empty()) continue;
    rest.usd.push_back(ends ? f.costs_usd[k] * rest.seconds.back() / time : f.costs_usd[k]);
  }
  return rest;
}

std::vector<Remedy> remedies(const RemedyQuestion& question, const NetworkModel& network,
                             const std::stop_token& stop) {
  std::vector<Remedy> found;
  for (const std::vector<Change>& changes : question.changes) {
    if (stop.stop_requested()) break;
    if (auto remedy = remedy_of(question, changes, network, kQuickLook))
      found.push_back(std::move(*remedy));
  }
  sort_by_help(found, question.now);
  if (found.size() > kLookedAtAgain) found.resize(kLookedAtAgain);
  for (Remedy& one : found) {
    if (stop.stop_requested()) break;
    if (auto again = remedy_of(question, one.changes, network, kSecondLook))
      one = std::move(*again);
  }
  sort_by_help(found, question.now);
  return found;
}

}  // namespace reckon::planner
