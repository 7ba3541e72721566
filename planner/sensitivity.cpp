#include "planner/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/search/lever_trials.h"
#include "planner/search/race.h"
#include "planner/search/rivals.h"
#include "sim/base/parallel.h"

namespace reckon::planner {
namespace {

constexpr std::array kLevers{Lever::price_here, Lever::price_everywhere, Lever::reclaims,
                             Lever::network};
constexpr double kCloseEnough = 1.005;      // bisection ends there
constexpr double kDifferenceErrors = 1.96;  // of a difference that is no chance: 95 %
/// The first lives of a forecast, as if no more had been asked for; means of what is neither time
/// nor cost stay those of all lives.
Forecast first_lives(Forecast f, int replications) {
  const auto n = std::size_t(replications);
  f.replications = replications;
  f.times_seconds.resize(n);
  f.time_seconds = quantiles(f.times_seconds);
  f.unfinished_share =
      double(std::ranges::count_if(f.times_seconds, [](double t) { return std::isinf(t); })) /
      double(n);
  if (f.cost_usd) {
    f.costs_usd.resize(n);
    f.cost_usd = quantiles(f.costs_usd);
  }
  return f;
}

std::string missed(const Evaluated& e) {
  return !e.meets_deadline    ? "deadline"
         : !e.meets_budget    ? "budget"
         : !e.meets_emissions ? "limit on energy or CO2"
                              : "";
}

class Contest {
 public:
  Contest(const Question& question, const NetworkModel& network, const SensitivityOptions& options,
          std::uint64_t seed)
      : question_(question), network_(network), options_(options), seed_(seed) {}

  /// The first is the choice. `levers`: of which it is a rival.
  void add(RankedPlan plan, Plan resolved, std::vector<Lever> levers) {
    entries_.push_back({std::move(plan), std::move(resolved), std::move(levers), {}, {}});
  }

  Sensitivity run(int all_replications) {
    replications_ = std::min(options_.replications, all_replications);
    forecast_bases();
    if (!entries_.front().base.meets_all() && replications_ < all_replications) {
      replications_ = all_replications;  // few lives blur a quantile that is close to its limit
      forecast_bases();
    }
    Sensitivity out;
    out.replications = replications_;
    out.most = kFactorsTried.back();
    drop_better(out, all_replications);
    out.rivals = entries_.size() - 1;
    draw_price_lines();
    for (const Lever lever : kLevers)
      if (std::ranges::any_of(entries_, [&](const Contender& e) { return moves(e, lever); }))
        out.levers.push_back({lever, {}, {}});
    // Searches of very different length, each with threads of its own: side by side they leave no
    // core idle while one rival's long lives end.
    parallel_for(2 * out.levers.size(), options_.threads, [&](std::size_t k) {
      LeverFlips& found = out.levers[k / 2];
      const bool up = k % 2 == 0;
      (up ? found.up : found.down) = flip(found.lever, up);
    });
    return out;
  }

 private:
  struct Verdict {
    bool flipped = false;
    std::vector<std::size_t> better;  // than the choice, best first; they meet all limits
    Evaluated best;                   // of them
    std::string limit;                // that the choice misses
  };

  Evaluated judge(const Contender& e, const Plan& plan, int replications, int threads) const {
    ForecastOptions how;
    how.replications = replications;
    how.seed = seed_;
    how.threads = threads;
    how.assumption_effects = false;
    Evaluated out = judged(question_, make_forecast(plan, network_, how));
    out.changes = e.plan.result.changes;
    return out;
  }
  void forecast_bases() {
    parallel_for(entries_.size(), options_.threads, [&](std::size_t k) {
      Contender& e = entries_[k];
      const Forecast& known = e.plan.result.forecast;  // of the search, under the same draws
      if (known.feasible && known.seed == seed_ && known.replications >= replications_) {
        e.base = judged(question_, first_lives(known, replications_));
        e.base.changes = e.plan.result.changes;
      } else {
        e.base = judge(e, e.resolved, replications_, options_.threads);  // they are few
      }
    });
  }
  bool certain(const Evaluated& better, const Evaluated& choice) const {
    return certainly_less(question_.objective, better.forecast, choice.forecast, kDifferenceErrors);
  }
  /// Those that are better than the choice as it stands; beyond chance only if they still are with
  /// all replications.
  void drop_better(Sensitivity& out, int all_replications) {
    const Contender choice = entries_.front();
    std::optional<Evaluated> whole;  // the choice with all replications
    std::vector<Contender> kept;
    for (Contender& e : entries_) {
      if (kept.empty() || !is_better(e.base, choice.base)) {
        kept.push_back(std::move(e));
        continue;
      }
      bool beyond_chance = certain(e.base, choice.base);
      if (beyond_chance && replications_ < all_replications) {
        if (!whole) whole = judge(choice, choice.resolved, all_replications, options_.threads);
        Evaluated again = judge(e, e.resolved, all_replications, options_.threads);
        beyond_chance = is_better(again, *whole) && certain(again, *whole);
        if (beyond_chance) e.base = std::move(again);
      }
      std::vector<RankedPlan>& dropped = beyond_chance ? out.better : out.ties;
      dropped.push_back(std::move(e.plan));
      dropped.back().result = std::move(e.base);
    }
    entries_ = std::move(kept);
  }

  /// A life's bill is a line in a price, and nothing else of it depends on prices: two points each
  /// give it for every factor.
  void draw_price_lines() {
    parallel_for(entries_.size(), options_.threads, [&](std::size_t k) {
      Contender& e = entries_[k];
      if (e.base.forecast.costs_usd.empty() || !moves(e, Lever::price_everywhere)) return;
      const Evaluated doubled =
          judge(e, with_lever(e, Lever::price_everywhere, 2), replications_, 1);
      for (std::size_t r = 0; r < doubled.forecast.costs_usd.size(); ++r)
        e.usd_per_price.push_back(doubled.forecast.costs_usd[r] - e.base.forecast.costs_usd[r]);
    });
  }
  bool moves(const Contender& e, Lever lever) const {
    return planner::moves(e.resolved, e.plan, entries_.front().plan, lever);
  }
  Plan with_lever(const Contender& e, Lever lever, double factor) const {
    return planner::with_lever(e.resolved, e.plan, entries_.front().plan, lever, factor);
  }

  /// The choice against those of `among`, all with the factor.
  Verdict verdict(Lever lever, double factor, const std::vector<std::size_t>& among) const {
    std::vector<const Contender*> all{&entries_.front()};
    for (const std::size_t k : among) all.push_back(&entries_[k]);
    const std::vector<std::optional<Evaluated>> now =
        LeverTrials(question_, network_, seed_, replications_, options_.threads)
            .outcomes(lever, factor, all);
    const Evaluated& choice = *now.front();
    Verdict v;
    v.limit = missed(choice);
    std::vector<std::size_t> order;
    for (std::size_t k = 1; k < now.size(); ++k)
      if (now[k] && now[k]->meets_all() && is_better(*now[k], choice) &&
          std::isfinite(now[k]->score))
        order.push_back(k);
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return is_better(*now[a], *now[b]); });
    for (const std::size_t k : order) v.better.push_back(among[k - 1]);
    if (!order.empty()) v.best = *now[order.front()];
    v.flipped = !order.empty() || !v.limit.empty();
    return v;
  }

  std::vector<std::size_t> all_rivals(Lever lever) const {
    std::vector<std::size_t> all;
    for (std::size_t k = 1; k < entries_.size(); ++k)
      if (std::ranges::count(entries_[k].levers, lever) > 0) all.push_back(k);
    return all;
  }

  std::optional<Flip> flip(Lever lever, bool up) const {
    double holds = 1;
    for (const double tried : kFactorsTried) {
      const double factor = up ? tried : 1 / tried;
      const Verdict v = verdict(lever, factor, all_rivals(lever));
      if (v.flipped) return between(lever, holds, factor, v);
      holds = factor;
    }
    return std::nullopt;
  }

  Flip between(Lever lever, const double sure, double factor, Verdict v) const {
    double holds = sure;
    while (true) {
      while (std::max(factor / holds, holds / factor) > kCloseEnough) {
        const double middle = std::sqrt(factor * holds);
        Verdict m = verdict(lever, middle, v.better);
        if (m.flipped) {
          factor = middle;
          v = std::move(m);
        } else {
          holds = middle;
        }
      }
      if (holds == sure) break;
      // One that was not better at the factor where bisection began may be here.
      Verdict h = verdict(lever, holds, all_rivals(lever));
      if (!h.flipped) break;
      factor = holds;
      holds = sure;
      v = std::move(h);
    }
    v = verdict(lever, factor, all_rivals(lever));
    Flip out;
    out.lever = lever;
    out.factor = factor;
    out.holds = holds;
    out.limit = v.limit;
    if (!v.better.empty()) {
      out.rival = entries_[v.better.front()].plan;
      out.rival->result = std::move(v.best);
    }
    return out;
  }

  const Question& question_;
  const NetworkModel& network_;
  SensitivityOptions options_;
  std::uint64_t seed_;
  int replications_ = 0;
  std::vector<Contender> entries_;
};

}  // namespace

Sensitivity sensitivity(const Question& question, const Catalog& catalog,
                        const NetworkModel& network, const RankedPlan& chosen, const Rivals& rivals,
                        const SensitivityOptions& options) {
  Contest contest(question, network, options, chosen.result.forecast.seed);
  const std::vector<Lever> every(kLevers.begin(), kLevers.end());
  std::vector<LeverRival> all{{chosen, every}};
  const auto add = [&](RankedPlan plan, const std::vector<Lever>& levers) {
    const auto same = std::ranges::find_if(all, [&](const LeverRival& r) {
      return same_changes(r.plan.result.changes, plan.result.changes);
    });
    if (same == all.end()) all.push_back({std::move(plan), levers});
  };
  for (const RankedPlan& rival : rivals.of_answer) add(rival, every);
  for (RankedPlan& other : bought_otherwise(question, chosen, catalog))
    add(std::move(other), every);
  for (const LeverRival& rival : rivals.of_levers) add(rival.plan, rival.levers);
  for (LeverRival& rival : all)
    if (auto resolved = resolve(question, rival.plan, catalog))
      contest.add(std::move(rival.plan), std::move(*resolved), std::move(rival.levers));
  return contest.run(chosen.result.forecast.replications);
}

}  // namespace reckon::planner
