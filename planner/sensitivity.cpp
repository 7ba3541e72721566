#include "planner/sensitivity.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>

#include "planner/search/lazy_lives.h"
#include "planner/search/race.h"
#include "planner/search/rivals.h"
#include "sim/base/parallel.h"

namespace reckon::planner {
namespace {

constexpr std::array kLevers{Lever::price_here, Lever::price_everywhere, Lever::reclaims,
                             Lever::network};
constexpr double kCloseEnough = 1.005;      // bisection ends there
constexpr double kDifferenceErrors = 1.96;  // of a difference that is no chance: 95 %
/// With a factor a rival is looked at no further where its worst few lives alone make it worse than
/// the choice, or where its first ones are worse by so many standard errors.
constexpr std::size_t kWorstLives = 4;
constexpr int kFirstLook = 16;
constexpr double kBeyondDoubt = 4;

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

/// The longest first.
std::vector<std::size_t> longest_lives(const Forecast& f) {
  std::vector<std::size_t> lives(f.times_seconds.size());
  std::iota(lives.begin(), lives.end(), std::size_t{0});
  std::ranges::stable_sort(lives, std::ranges::greater{},
                           [&](std::size_t k) { return f.times_seconds[k]; });
  lives.resize(std::min(lives.size(), kWorstLives));
  return lives;
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
      if (std::ranges::any_of(entries_, [&](const Entry& e) { return moves(e, lever); }))
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
  struct Entry {
    RankedPlan plan;
    Plan resolved;
    std::vector<Lever> levers;
    Evaluated base;
    std::vector<double> usd_per_price;  // of each life, for each time the price; empty: none
  };
  struct Verdict {
    bool flipped = false;
    std::vector<std::size_t> better;  // than the choice, best first; they meet all limits
    Evaluated best;                   // of them
    std::string limit;                // that the choice misses
  };

  Evaluated judge(const Entry& e, const Plan& plan, int replications, int threads) const {
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
      Entry& e = entries_[k];
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
    const Entry choice = entries_.front();
    std::optional<Evaluated> whole;  // the choice with all replications
    std::vector<Entry> kept;
    for (Entry& e : entries_) {
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
      Entry& e = entries_[k];
      if (e.base.forecast.costs_usd.empty() || !moves(e, Lever::price_everywhere)) return;
      const Evaluated doubled =
          judge(e, with_lever(e, Lever::price_everywhere, 2), replications_, 1);
      for (std::size_t r = 0; r < doubled.forecast.costs_usd.size(); ++r)
        e.usd_per_price.push_back(doubled.forecast.costs_usd[r] - e.base.forecast.costs_usd[r]);
    });
  }
  Evaluated at_price(const Entry& e, double factor) const {
    Forecast f = e.base.forecast;
    for (std::size_t k = 0; k < e.usd_per_price.size(); ++k)
      f.costs_usd[k] += (factor - 1) * e.usd_per_price[k];
    if (f.cost_usd) f.cost_usd = quantiles(f.costs_usd);
    Evaluated out = judged(question_, std::move(f));
    out.changes = e.plan.result.changes;
    return out;
  }

  bool moves(const Entry& e, Lever lever) const {
    return planner::moves(e.resolved, e.plan, entries_.front().plan, lever);
  }
  Plan with_lever(const Entry& e, Lever lever, double factor) const {
    return planner::with_lever(e.resolved, e.plan, entries_.front().plan, lever, factor);
  }

  /// A plan with a factor: its lives as far as they are needed.
  struct Trial {
    const Entry* plan = nullptr;
    std::unique_ptr<LazyLives> lives;    // nullptr: no lives are needed to know it
    std::atomic<bool> hopeless = false;  // it cannot be better than the choice
  };
  void begin(Trial& trial, const Entry& e, Lever lever, double factor) const {
    trial.plan = &e;
    if (moves(e, lever) && !is_price(lever) && e.base.forecast.feasible)
      trial.lives =
          std::make_unique<LazyLives>(with_lever(e, lever, factor), network_, seed_, replications_);
  }
  /// What it is, all lives lived.
  Evaluated outcome(const Trial& trial, Lever lever, double factor) const {
    const Entry& e = *trial.plan;
    if (!moves(e, lever) || !e.base.forecast.feasible) return e.base;
    if (is_price(lever)) return at_price(e, factor);
    Evaluated out = judged(question_, trial.lives->forecast(e.base.forecast.cost_usd.has_value()));
    out.changes = e.plan.result.changes;
    return out;
  }

  using Numbers = std::vector<std::size_t>;
  static Numbers first(std::size_t n) {
    Numbers numbers(n);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    return numbers;
  }
  /// Some lives of each trial that is still open: the first of each, then the second of each. One
  /// that never ends makes its plan hopeless, if `all_must_end`; the others then need no more.
  void live(const std::vector<Trial*>& trials, const std::vector<Numbers>& which,
            bool all_must_end) const {
    struct Item {
      Trial* trial;
      std::size_t life;
    };
    std::vector<Item> items;
    for (std::size_t turn = 0; turn < std::size_t(replications_); ++turn)
      for (std::size_t t = 0; t < trials.size(); ++t)
        if (trials[t]->lives && !trials[t]->hopeless && turn < which[t].size())
          items.push_back({trials[t], which[t][turn]});
    parallel_for(items.size(), options_.threads, [&](std::size_t k) {
      Trial& trial = *items[k].trial;
      if (trial.hopeless) return;
      if (!(*trial.lives)(items[k].life).finished && all_must_end) trial.hopeless = true;
    });
  }
  void live_all(const std::vector<Trial*>& trials, bool all_must_end) const {
    live(trials, std::vector<Numbers>(trials.size(), first(std::size_t(replications_))),
         all_must_end);
  }

  /// Hardly can all lives make it better than the choice.
  bool first_lives_are_worse(const Trial& trial, const Evaluated& choice) const {
    Forecast f;
    for (std::size_t k = 0; k < kFirstLook; ++k) {
      f.times_seconds.push_back((*trial.lives)(k).seconds);
      if (trial.plan->base.forecast.cost_usd) f.costs_usd.push_back((*trial.lives)(k).usd);
    }
    return certainly_less(question_.objective, choice.forecast, f, kBeyondDoubt);
  }
  /// If all others took no time and cost nothing, it were worse still.
  bool longest_lives_are_worse(const Trial& trial, const Numbers& longest,
                               const Evaluated& choice) const {
    double seconds = 0, usd = 0;
    for (const std::size_t k : longest) {
      seconds += (*trial.lives)(k).seconds;
      if (trial.plan->base.forecast.cost_usd) usd += (*trial.lives)(k).usd;
    }
    return score_of(question_.objective, seconds / replications_, usd / replications_) >
           choice.score;
  }
  /// Finds the trials that all lives cannot make better than the choice, or hardly; what settles
  /// most comes first.
  void give_up_hopeless(const std::vector<Trial*>& rivals, const Evaluated& choice) const {
    std::vector<Numbers> firsts(rivals.size(), first(kFirstLook)), longest;
    for (const Trial* t : rivals) longest.push_back(longest_lives(t->plan->base.forecast));
    const auto settle = [&](const auto& is_worse) {
      if (!choice.meets_all()) return;
      for (std::size_t t = 0; t < rivals.size(); ++t)
        if (rivals[t]->lives && !rivals[t]->hopeless && is_worse(t)) rivals[t]->hopeless = true;
    };
    live(rivals, firsts, true);
    settle([&](std::size_t t) { return first_lives_are_worse(*rivals[t], choice); });
    live(rivals, longest, true);
    settle([&](std::size_t t) { return longest_lives_are_worse(*rivals[t], longest[t], choice); });
  }

  /// The choice and those of `among`, all with the factor; nullopt: hopeless.
  std::vector<std::optional<Evaluated>> lived(Lever lever, double factor,
                                              const std::vector<std::size_t>& among) const {
    std::vector<Trial> trials(among.size() + 1);
    parallel_for(trials.size(), options_.threads, [&](std::size_t k) {
      begin(trials[k], entries_[k == 0 ? 0 : among[k - 1]], lever, factor);
    });
    std::vector<Trial*> rivals;
    for (std::size_t k = 1; k < trials.size(); ++k) rivals.push_back(&trials[k]);
    std::vector<std::optional<Evaluated>> now(trials.size());
    live_all({&trials.front()}, false);
    now.front() = outcome(trials.front(), lever, factor);
    const bool of_means = !is_of_p95(question_.objective);
    if (of_means && replications_ > kFirstLook) give_up_hopeless(rivals, *now.front());
    live_all(rivals, of_means);
    for (std::size_t k = 1; k < trials.size(); ++k)
      if (!trials[k].hopeless) now[k] = outcome(trials[k], lever, factor);
    return now;
  }

  /// The choice against those of `among`, all with the factor.
  Verdict verdict(Lever lever, double factor, const std::vector<std::size_t>& among) const {
    const std::vector<std::optional<Evaluated>> now = lived(lever, factor, among);
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

  Numbers all_rivals(Lever lever) const {
    Numbers all;
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
  std::vector<Entry> entries_;
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
