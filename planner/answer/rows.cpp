#include "planner/answer/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace reckon::planner {
namespace {

/// Steeper than this, in ln cost a ln time, nobody goes along a front.
constexpr double kSteepest = 5;
constexpr double kNextTo = 0.05;

bool near(double a, double b) { return std::abs(a - b) <= kEqualWithin * std::min(a, b); }

bool equal_rows(const RankedPlan& a, const RankedPlan& b) {
  const Forecast &f = a.result.forecast, &g = b.result.forecast;
  if (!near(f.time_seconds.mean, g.time_seconds.mean)) return false;
  if (f.cost_usd.has_value() != g.cost_usd.has_value()) return false;
  if (f.cost_usd && !near(f.cost_usd->mean, g.cost_usd->mean)) return false;
  const auto place = [](const RankedPlan& p) {
    return std::tuple(p.split.nodes, p.split.parameter_servers, p.offer.region, p.offer.zone,
                      bought_text(p.offer, p.split.nodes), checkpoint_text(p.hardware),
                      p.hardware.server_machine);
  };
  return same_hardware(a.hardware, b.hardware) && place(a) == place(b);
}

bool counts(const Evaluated& e) { return e.meets_all() && std::isfinite(e.score); }

/// "on gcp", "spot": what a candidate may be the best of.
std::vector<std::string> wishes_of(const Space& space, const Candidate& c) {
  std::vector<std::string> wishes{"on " + std::string(to_text(space.site(c).hardware.provider))};
  if (!space.offer(c).is_mixed()) wishes.emplace_back(to_text(space.offer(c).pricing));
  return wishes;
}

std::set<std::string> wishes_met(const Space& space, const std::vector<Evaluated>& finished) {
  std::set<std::string> met;
  for (const Evaluated& e : finished)
    if (counts(e))
      for (std::string& wish : wishes_of(space, e.candidate)) met.insert(std::move(wish));
  return met;
}

}  // namespace

std::vector<RankedPlan> rows_of(const Space& space, const std::vector<Evaluated>& finished,
                                std::size_t most) {
  std::vector<RankedPlan> rows;
  for (const Evaluated& e : finished) {
    if (!counts(e)) break;
    RankedPlan plan = ranked(space, e);
    const auto same =
        std::ranges::find_if(rows, [&](const RankedPlan& row) { return equal_rows(row, plan); });
    if (same != rows.end())
      same->equals.push_back(std::move(plan));
    else if (rows.size() < most)
      rows.push_back(std::move(plan));
  }
  return rows;
}

std::vector<Candidate> wanted_for_best_by(const Space& space,
                                          const std::vector<Evaluated>& finished) {
  std::set<std::string> met = wishes_met(space, finished);
  std::vector<Candidate> wanted;
  for (const Candidate& c : space.candidates) {
    if (c.proven_late || c.proven_dear || !std::isfinite(c.estimate)) continue;
    bool is_new = false;
    for (std::string& wish : wishes_of(space, c)) is_new |= met.insert(std::move(wish)).second;
    if (is_new) wanted.push_back(c);
  }
  return wanted;
}

std::vector<BestBy> best_by(const Space& space, Objective objective,
                            const std::vector<Evaluated>& finished,
                            const std::vector<RankedPlan>& rows) {
  std::vector<BestBy> out;
  if (rows.empty()) return out;
  const auto shown = [&](const RankedPlan& plan) {
    const auto is_it = [&](const RankedPlan& other) {
      return same_changes(other.result.changes, plan.result.changes) || equal_rows(other, plan);
    };
    return std::ranges::any_of(rows, is_it) ||
           std::ranges::any_of(out, [&](const BestBy& other) { return is_it(other.plan); });
  };
  std::set<std::string> met;
  for (const Evaluated& e : finished) {
    if (!counts(e)) break;
    for (std::string& wish : wishes_of(space, e.candidate)) {
      if (!met.insert(wish).second) continue;
      RankedPlan plan = ranked(space, e);
      if (!shown(plan)) out.push_back({std::move(wish), std::move(plan)});
    }
  }
  const Forecast& first = rows.front().result.forecast;
  const bool by_time = objective == Objective::time || objective == Objective::p95_time;
  for (const Evaluated& e : finished) {
    if (!counts(e)) break;
    const Forecast& f = e.forecast;
    const bool half =
        by_time ? f.cost_usd && first.cost_usd && f.cost_usd->p95 <= first.cost_usd->p95 / 2
                : f.time_seconds.p95 <= first.time_seconds.p95 / 2;
    if (!half) continue;
    RankedPlan plan = ranked(space, e);
    if (!shown(plan))
      out.push_back({by_time ? "at half the cost" : "in half the time", std::move(plan)});
    break;
  }
  return out;
}

std::vector<RankedPlan> without_absurd_ends(std::vector<RankedPlan> front, const Candidate* best) {
  const auto time = [&](std::size_t k) { return front[k].result.forecast.time_seconds.mean; };
  const auto cost = [&](std::size_t k) { return front[k].result.forecast.cost_usd->mean; };
  const auto stays = [&](std::size_t k) {
    const Candidate& c = front[k].result.candidate;
    return best != nullptr && c.site == best->site && c.split == best->split &&
           c.offer == best->offer;
  };
  const auto drop = [&](std::size_t k) { front.erase(front.begin() + std::ptrdiff_t(k)); };
  const auto slope = [&](std::size_t k) {  // between k and k + 1
    return std::log(cost(k) / cost(k + 1)) / std::log(time(k + 1) / time(k));
  };
  // From the cheap end, each against the last that stays: a dense front is thinned, not lost.
  for (std::size_t k = front.size(); k-- > 0 && front.size() > 2;)
    if (k + 1 < front.size() && !stays(k) && time(k + 1) <= (1 + kNextTo) * time(k)) drop(k);
  while (front.size() > 2 && !stays(0) && slope(0) > kSteepest) drop(0);
  while (front.size() > 2 && !stays(front.size() - 1) && slope(front.size() - 2) < 1 / kSteepest)
    drop(front.size() - 1);
  return front;
}

}  // namespace reckon::planner
