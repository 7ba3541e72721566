#include "planner/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <variant>

#include "planner/race.h"
#include "planner/rivals.h"
#include "sim/base/parallel.h"
#include "sim/forecast/replicate.h"

namespace reckon::planner {
namespace {

constexpr std::array kLevers{Lever::price_here, Lever::price_everywhere, Lever::reclaims,
                             Lever::network};
constexpr double kCloseEnough = 1.005;    // bisection ends there
constexpr double kStandardErrors = 1.96;  // of a difference that is no chance: 95 %
/// With a factor a rival is looked at no further where its worst few lives alone make it worse than
/// the choice, or where its first ones are worse by so many standard errors.
constexpr std::size_t kWorstLives = 4;
constexpr int kFirstLook = 16;
constexpr double kBeyondDoubt = 4;

HourlyRate times(HourlyRate rate, double factor) {
  return {std::llround(double(rate.nano_usd_per_hour) * factor)};
}
template <class T>
void scale(Fact<T>& fact, double factor) {
  fact.value = fact.value * factor;
  fact.low = fact.low * factor;
  fact.high = fact.high * factor;
}

/// Every age of a node at its reclaim divided by the factor.
void scale_reclaims(ReclaimRules& rules, double factor) {
  const double age = 1 / factor;
  if (rules.assumed_mean) scale(*rules.assumed_mean, age);
  if (auto* law = std::get_if<ExponentialReclaim>(&rules.law)) law->mean *= age;
  if (auto* law = std::get_if<WeibullReclaim>(&rules.law)) law->scale *= age;
  if (auto* law = std::get_if<BathtubReclaim>(&rules.law))
    for (Seconds* t : {&law->tau1, &law->tau2, &law->b, &law->limit}) *t *= age;
  for (std::vector<Seconds>& node : rules.trace)
    for (Seconds& t : node) t *= age;
  rules.trace_length *= age;
}

/// Workers' nodes that are bought as the choice's are.
bool is_bought_as(const PlannedPool& pool, const RankedPlan& chosen) {
  return pool.role == Role::worker && pool.pricing == chosen.offer.pricing;
}

/// Nodes whose price is one number to a buyer: those with one accelerator, else of one machine.
bool same_goods(const Hardware& a, const Hardware& b) {
  if (a.own || b.own) return a.own == b.own;
  if (a.provider != b.provider || a.accelerator != b.accelerator) return false;
  return !a.accelerator.empty() || a.machine == b.machine;
}

bool moves(const Plan& plan, const RankedPlan& of, const RankedPlan& chosen, Lever lever) {
  switch (lever) {
    case Lever::price_here:
    case Lever::price_everywhere:
      return same_goods(of.hardware, chosen.hardware) &&
             std::ranges::any_of(plan.pools,
                                 [&](const PlannedPool& p) { return is_bought_as(p, chosen); }) &&
             (lever == Lever::price_everywhere || of.offer.region == chosen.offer.region);
    case Lever::reclaims:
      return !std::holds_alternative<NoReclaim>(plan.reclaim.law) &&
             std::ranges::any_of(
                 plan.pools, [](const PlannedPool& p) { return p.pricing == CapacityType::spot; });
    case Lever::network:
      return true;
  }
  return false;
}

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

bool is_price(Lever lever) {
  return lever == Lever::price_here || lever == Lever::price_everywhere;
}

std::string missed(const Evaluated& e) {
  return !e.meets_deadline ? "deadline" : !e.meets_budget ? "budget" : "";
}

class Contest {
 public:
  Contest(const Question& question, const NetworkModel& network, const SensitivityOptions& options,
          std::uint64_t seed)
      : question_(question), network_(network), options_(options), seed_(seed) {}

  /// The first is the choice.
  void add(RankedPlan plan, Plan resolved) {
    entries_.push_back({std::move(plan), std::move(resolved), {}, {}});
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
    out.overrides = e.plan.result.overrides;
    return out;
  }
  void forecast_bases() {
    parallel_for(entries_.size(), options_.threads, [&](std::size_t k) {
      Entry& e = entries_[k];
      const Forecast& known = e.plan.result.forecast;  // of the search, under the same draws
      if (known.feasible && known.seed == seed_ && known.replications >= replications_) {
        e.base = judged(question_, first_lives(known, replications_));
        e.base.overrides = e.plan.result.overrides;
      } else {
        e.base = judge(e, e.resolved, replications_, 1);
      }
    });
  }
  bool certain(const Evaluated& better, const Evaluated& choice) const {
    return certainly_less(question_.objective, better.forecast, choice.forecast, kStandardErrors);
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
    out.overrides = e.plan.result.overrides;
    return out;
  }

  bool moves(const Entry& e, Lever lever) const {
    return planner::moves(e.resolved, e.plan, entries_.front().plan, lever);
  }
  Plan with_lever(const Entry& e, Lever lever, double factor) const {
    return planner::with_lever(e.resolved, e.plan, entries_.front().plan, lever, factor);
  }
  Evaluated with_factor(const Entry& e, Lever lever, double factor, int threads) const {
    if (!moves(e, lever)) return e.base;
    if (is_price(lever)) return at_price(e, factor);
    return judge(e, with_lever(e, lever, factor), replications_, threads);
  }

  /// Can all its lives not make it better than the choice? Proven by its worst lives, or hardly, by
  /// its first.
  bool is_hopeless(const Entry& e, Lever lever, double factor, const Evaluated& choice) const {
    const Objective objective = question_.objective;
    if (replications_ <= kFirstLook || is_price(lever) || is_of_p95(objective)) return false;
    const Plan plan = with_lever(e, lever, factor);
    const ForecastSetup setup = make_setup(plan, network_);
    Replicator replicator(setup);
    const SimDuration submit = to_clock(plan.jobs.front().submit);
    Forecast lived;  // times and costs of some lives
    const auto ends = [&](std::size_t k) {
      const LifeResult life = replicator.run(seed_, std::uint32_t(k));
      lived.times_seconds.push_back(to_seconds(life.finish - SimTime{} - submit).count());
      if (e.base.forecast.cost_usd) lived.costs_usd.push_back(to_usd(life.bill).v);
      return life.finished;
    };
    const auto least_mean = [&](const std::vector<double>& values) {
      return std::accumulate(values.begin(), values.end(), 0.0) / replications_;
    };
    for (const std::size_t k : longest_lives(e.base.forecast)) {
      if (!ends(k)) return true;
      const double least =
          score_of(objective, least_mean(lived.times_seconds), least_mean(lived.costs_usd));
      if (choice.meets_all() && least > choice.score) return true;
    }
    lived = {};
    for (std::size_t k = 0; k < kFirstLook; ++k)
      if (!ends(k)) return true;
    return choice.meets_all() && certainly_less(objective, choice.forecast, lived, kBeyondDoubt);
  }

  /// The choice and those of `among`, all with the factor; nullopt: hopeless.
  std::vector<std::optional<Evaluated>> lived(Lever lever, double factor,
                                              const std::vector<std::size_t>& among) const {
    std::vector<std::optional<Evaluated>> now(among.size() + 1);
    now.front() = with_factor(entries_.front(), lever, factor, options_.threads);
    std::vector<char> hopeless(among.size(), 0);
    parallel_for(among.size(), options_.threads, [&](std::size_t i) {
      const Entry& e = entries_[among[i]];
      hopeless[i] = moves(e, lever) && is_hopeless(e, lever, factor, *now.front()) ? 1 : 0;
    });
    std::vector<std::size_t> whole;
    for (std::size_t i = 0; i < among.size(); ++i)
      if (hopeless[i] == 0) whole.push_back(i);
    const int inner = whole.size() == 1 ? options_.threads : 1;
    parallel_for(whole.size(), options_.threads, [&](std::size_t w) {
      now[whole[w] + 1] = with_factor(entries_[among[whole[w]]], lever, factor, inner);
    });
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

  std::vector<std::size_t> all_rivals() const {
    std::vector<std::size_t> all(entries_.size() - 1);
    std::iota(all.begin(), all.end(), std::size_t{1});
    return all;
  }

  std::optional<Flip> flip(Lever lever, bool up) const {
    double holds = 1;
    for (const double tried : kFactorsTried) {
      const double factor = up ? tried : 1 / tried;
      const Verdict v = verdict(lever, factor, all_rivals());
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
      Verdict h = verdict(lever, holds, all_rivals());
      if (!h.flipped) break;
      factor = holds;
      holds = sure;
      v = std::move(h);
    }
    v = verdict(lever, factor, all_rivals());
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

std::string_view to_text(Lever lever) {
  switch (lever) {
    case Lever::price_here:
      return "price_here";
    case Lever::price_everywhere:
      return "price_everywhere";
    case Lever::reclaims:
      return "reclaims";
    case Lever::network:
      return "network";
  }
  return "";
}

Plan with_lever(Plan plan, const RankedPlan& of, const RankedPlan& chosen, Lever lever,
                double factor) {
  if (!moves(plan, of, chosen, lever)) return plan;
  switch (lever) {
    case Lever::price_here:
    case Lever::price_everywhere:
      for (PlannedPool& pool : plan.pools) {
        if (!is_bought_as(pool, chosen)) continue;
        pool.price.machine = times(pool.price.machine, factor);
        pool.price.accelerators = times(pool.price.accelerators, factor);
        if (pool.reservation) pool.reservation->price = times(pool.reservation->price, factor);
      }
      break;
    case Lever::reclaims:
      scale_reclaims(plan.reclaim, factor);
      break;
    case Lever::network:
      for (PlannedPool& pool : plan.pools) scale(pool.machine.network, factor);
      break;
  }
  return plan;
}

Sensitivity sensitivity(const Question& question, const Catalog& catalog,
                        const NetworkModel& network, const RankedPlan& chosen,
                        const std::vector<RankedPlan>& rivals, const SensitivityOptions& options) {
  Contest contest(question, network, options, chosen.result.forecast.seed);
  std::vector<RankedPlan> all{chosen};
  all.insert(all.end(), rivals.begin(), rivals.end());
  for (RankedPlan& other : bought_otherwise(question, chosen, catalog)) {
    if (std::ranges::none_of(
            all, [&](const RankedPlan& p) { return p.result.overrides == other.result.overrides; }))
      all.push_back(std::move(other));
  }
  for (RankedPlan& plan : all)
    if (auto resolved = resolve(question, plan, catalog))
      contest.add(std::move(plan), std::move(*resolved));
  return contest.run(chosen.result.forecast.replications);
}

}  // namespace reckon::planner
