#include "planner/search/lever_trials.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "planner/search/lazy_lives.h"
#include "planner/search/race.h"
#include "sim/base/parallel.h"

namespace reckon::planner {
namespace {

/// With a factor a rival is looked at no further where its worst few lives alone make it worse than
/// the choice, or where its first ones are worse by so many standard errors.
constexpr std::size_t kWorstLives = 4;
constexpr int kFirstLook = 16;
constexpr double kBeyondDoubt = 4;

/// The longest first.
std::vector<std::size_t> longest_lives(const Forecast& f) {
  std::vector<std::size_t> lives(f.times_seconds.size());
  std::iota(lives.begin(), lives.end(), std::size_t{0});
  std::ranges::stable_sort(lives, std::ranges::greater{},
                           [&](std::size_t k) { return f.times_seconds[k]; });
  lives.resize(std::min(lives.size(), kWorstLives));
  return lives;
}

/// 0, 1, ... n - 1.
std::vector<std::size_t> first_numbers(std::size_t n) {
  std::vector<std::size_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

}  // namespace

/// A plan with a factor: its lives as far as they are needed.
struct LeverTrials::Trial {
  const Contender* plan = nullptr;
  std::unique_ptr<LazyLives> lives;    // nullptr: no lives are needed to know it
  std::atomic<bool> hopeless = false;  // it cannot be better than the choice
};

Evaluated LeverTrials::at_price(const Contender& e, double factor) const {
  Forecast f = e.base.forecast;
  for (std::size_t k = 0; k < e.usd_per_price.size(); ++k)
    f.costs_usd[k] += (factor - 1) * e.usd_per_price[k];
  if (f.cost_usd) f.cost_usd = quantiles(f.costs_usd);
  Evaluated out = judged(question_, std::move(f));
  out.changes = e.plan.result.changes;
  return out;
}

void LeverTrials::begin(Trial& trial, const Contender& e, const Contender& choice, Lever lever,
                        double factor) const {
  trial.plan = &e;
  if (moves(e.resolved, e.plan, choice.plan, lever) && !is_price(lever) && e.base.forecast.feasible)
    trial.lives = std::make_unique<LazyLives>(
        with_lever(e.resolved, e.plan, choice.plan, lever, factor), network_, seed_, replications_);
}
/// What it is, all lives lived.
Evaluated LeverTrials::outcome(const Trial& trial, const Contender& choice, Lever lever,
                               double factor) const {
  const Contender& e = *trial.plan;
  if (!moves(e.resolved, e.plan, choice.plan, lever) || !e.base.forecast.feasible) return e.base;
  if (is_price(lever)) return at_price(e, factor);
  Evaluated out = judged(question_, trial.lives->forecast(e.base.forecast.cost_usd.has_value()));
  out.changes = e.plan.result.changes;
  return out;
}

/// Some lives of each trial that is still open: the first of each, then the second of each. One
/// that never ends makes its plan hopeless, if `all_must_end`; the others then need no more.
void LeverTrials::live(const std::vector<Trial*>& trials, const std::vector<Numbers>& which,
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
  parallel_for(items.size(), threads_, [&](std::size_t k) {
    Trial& trial = *items[k].trial;
    if (trial.hopeless) return;
    if (!(*trial.lives)(items[k].life).finished && all_must_end) trial.hopeless = true;
  });
}
void LeverTrials::live_all(const std::vector<Trial*>& trials, bool all_must_end) const {
  live(trials, std::vector<Numbers>(trials.size(), first_numbers(std::size_t(replications_))),
       all_must_end);
}

/// Hardly can all lives make it better than the choice.
bool LeverTrials::first_lives_are_worse(const Trial& trial, const Evaluated& choice) const {
  Forecast f;
  for (std::size_t k = 0; k < kFirstLook; ++k) {
    f.times_seconds.push_back((*trial.lives)(k).seconds);
    if (trial.plan->base.forecast.cost_usd) f.costs_usd.push_back((*trial.lives)(k).usd);
  }
  return certainly_less(question_.objective, choice.forecast, f, kBeyondDoubt);
}
/// If all others took no time and cost nothing, it were worse still.
bool LeverTrials::longest_lives_are_worse(const Trial& trial, const Numbers& longest,
                                          const Evaluated& choice) const {
  double seconds = 0, usd = 0;
  for (const std::size_t k : longest) {
    seconds += (*trial.lives)(k).seconds;
    if (trial.plan->base.forecast.cost_usd) usd += (*trial.lives)(k).usd;
  }
  return score_of(question_.objective, seconds / replications_, usd / replications_) > choice.score;
}
/// Finds the trials that all lives cannot make better than the choice, or hardly; what settles
/// most comes first.
void LeverTrials::give_up_hopeless(const std::vector<Trial*>& rivals,
                                   const Evaluated& choice) const {
  std::vector<Numbers> firsts(rivals.size(), first_numbers(kFirstLook)), longest;
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

std::vector<std::optional<Evaluated>> LeverTrials::outcomes(
    Lever lever, double factor, const std::vector<const Contender*>& all) const {
  const Contender& choice = *all.front();
  std::vector<Trial> trials(all.size());
  parallel_for(trials.size(), threads_,
               [&](std::size_t k) { begin(trials[k], *all[k], choice, lever, factor); });
  std::vector<Trial*> rivals;
  for (std::size_t k = 1; k < trials.size(); ++k) rivals.push_back(&trials[k]);
  std::vector<std::optional<Evaluated>> now(trials.size());
  live_all({&trials.front()}, false);
  now.front() = outcome(trials.front(), choice, lever, factor);
  const bool of_means = !is_of_p95(question_.objective);
  if (of_means && replications_ > kFirstLook) give_up_hopeless(rivals, *now.front());
  live_all(rivals, of_means);
  for (std::size_t k = 1; k < trials.size(); ++k)
    if (!trials[k].hopeless) now[k] = outcome(trials[k], choice, lever, factor);
  return now;
}

}  // namespace reckon::planner
