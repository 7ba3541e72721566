#include "planner/search/race.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace reckon::planner {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
/// Candidates that are forecast at a time between two looks at the bounds.
constexpr std::size_t kWave = 8;
/// The first wave of a space that is too large to be forecast whole finds what prunes the rest.
constexpr std::size_t kFirstWave = 4;
/// Waves that look for a first plan that meets all limits.
constexpr std::size_t kFirstWaves = 4;
/// What is cheapest within a deadline is slow, and dear within a budget what is fastest: the most
/// promising are those that a limit in the tail of the draws just excludes. So candidates that keep
/// well within the limits at the medians (time and cost by these shares of them) are tried too: in
/// each wave that looks for a first plan by another share, in a race by all, so many each.
constexpr std::array kWithin{1.0, 0.7, 0.5, 0.35, 0.25, 0.15};
constexpr std::size_t kWithinEach = 6;
/// Lives of each racer in the first round: a sixteenth of the replications, within these.
constexpr int kFewestLives = 8, kMostFirstLives = 32;
/// Successive halving: half of the racers stay, with twice the lives.
constexpr int kMoreLives = 2;

class Race {
 public:
  Race(const Space& space, Evaluator& evaluator, const RaceOptions& options)
      : space_(space), evaluator_(evaluator), options_(options), question_(evaluator.question()) {
    for (const Candidate& c : space.candidates) {
      if (!options.prune) {
        open_.push_back(c);
        continue;
      }
      result.proven_late += c.proven_late ? 1 : 0;
      result.proven_dear += !c.proven_late && c.proven_dear ? 1 : 0;
      if (!c.proven_late && !c.proven_dear) open_.push_back(c);
    }
  }
  RaceResult result;

  void run() {
    const bool small = open_.size() <= options_.exact_up_to;
    const std::size_t first = small ? kWave : kFirstWave;
    for (std::size_t wave = 0; wave < kFirstWaves && !open_.empty() && best_ == kNone; ++wave) {
      if (!small) bring_forward(kWithin[wave], first);
      finish_wave(first);
    }
    drop_proven();
    if (open_.size() <= options_.exact_up_to) {
      std::ranges::stable_sort(open_, {}, &Candidate::bound);
      while (!open_.empty()) {
        finish_wave(kWave);
        drop_proven();
      }
      result.exact = true;
    } else {
      halve();
    }
    std::ranges::sort(result.finished, is_better);
  }

 private:
  void finish(std::vector<Candidate> wave) {
    for (Evaluated& e : evaluator_.evaluate(wave, space_.replications)) {
      if (e.meets_all()) best_ = std::min(best_, e.score);
      result.finished.push_back(std::move(e));
    }
    tell(open_.size());
  }
  void tell(std::size_t racing) const {
    if (!options_.progress) return;
    const std::int64_t open_out = space_.considered - std::int64_t(space_.candidates.size()) +
                                  result.proven_late + result.proven_dear + result.proven_worse +
                                  result.outrun + result.not_tried;
    options_.progress({space_.considered, open_out, racing, best_});
  }
  void finish_wave(std::size_t most) {
    const std::size_t n = std::min(most, open_.size());
    std::vector<Candidate> wave(open_.begin(), open_.begin() + std::ptrdiff_t(n));
    open_.erase(open_.begin(), open_.begin() + std::ptrdiff_t(n));
    finish(std::move(wave));
  }
  /// A bound equal to the best could still tie and win by name: it stays.
  void drop_proven() {
    if (!options_.prune) return;
    result.proven_worse +=
        std::int64_t(std::erase_if(open_, [&](const Candidate& c) { return c.bound > best_; }));
  }

  void note_open(double bound) {
    result.least_open_bound =
        result.least_open_bound == 0 ? bound : std::min(result.least_open_bound, bound);
  }

  bool keeps_within(const Candidate& c, double share) const {
    const Question& q = question_;
    return (!q.deadline || c.time <= share * q.deadline->value) &&
           (!q.budget || c.cost <= share * q.budget->value);
  }
  /// The first `most` that keep within that share of the limits, or all that do, to the front.
  void bring_forward(double share, std::size_t most) {
    std::size_t taken = 0;
    std::stable_partition(open_.begin(), open_.end(), [&](const Candidate& c) {
      return taken < most && keeps_within(c, share) && ++taken > 0;
    });
  }
  /// Behind the most promising, those of each share of each limit.
  std::size_t arrange_starters() {
    const Question& q = question_;
    const std::size_t promising = std::min(options_.starters, open_.size());
    if (!q.deadline && !q.budget) return promising;
    std::array<std::size_t, kWithin.size()> by_time{}, by_cost{};
    const auto rest = std::stable_partition(
        open_.begin() + std::ptrdiff_t(promising), open_.end(), [&](const Candidate& c) {
          bool wanted = false;
          for (std::size_t k = 0; k < kWithin.size(); ++k) {
            if (q.deadline && by_time[k] < kWithinEach && c.time <= kWithin[k] * q.deadline->value)
              wanted = ++by_time[k] > 0;
            if (q.budget && by_cost[k] < kWithinEach && c.cost <= kWithin[k] * q.budget->value)
              wanted = ++by_cost[k] > 0;
          }
          return wanted;
        });
    return std::size_t(rest - open_.begin());
  }

  void halve() {
    const std::size_t starters = arrange_starters();
    std::vector<Candidate> racing(open_.begin(), open_.begin() + std::ptrdiff_t(starters));
    open_.erase(open_.begin(), open_.begin() + std::ptrdiff_t(starters));
    for (const Candidate& c : open_) note_open(c.bound);
    result.not_tried = std::int64_t(open_.size());
    const int all = space_.replications;
    for (int lives = std::clamp(all / 16, kFewestLives, kMostFirstLives);
         racing.size() > options_.finalists && lives < all; lives *= kMoreLives) {
      std::vector<Evaluated> round = evaluator_.evaluate(racing, lives);
      std::ranges::sort(round, is_better);
      const std::size_t stay = std::max(options_.finalists, (round.size() + 1) / 2);
      racing.clear();
      for (std::size_t k = 0; k < round.size(); ++k) {
        if (k < stay) {
          racing.push_back(round[k].candidate);
        } else {
          ++result.outrun;
          note_open(round[k].candidate.bound);
        }
      }
      tell(racing.size());
    }
    finish(std::move(racing));
  }

  const Space& space_;
  Evaluator& evaluator_;
  const RaceOptions& options_;
  const Question& question_;
  std::vector<Candidate> open_;
  double best_ = kNone;
};

/// What the objective averages, in one replication.
double of_life(Objective objective, const Forecast& f, std::size_t k) {
  return score_of(objective, f.times_seconds[k], f.costs_usd.empty() ? kNone : f.costs_usd[k]);
}

}  // namespace

RaceResult race(const Space& space, Evaluator& evaluator, const RaceOptions& options) {
  Race made(space, evaluator, options);
  made.run();
  return std::move(made.result);
}

bool certainly_less(Objective objective, const Forecast& a, const Forecast& b, double z) {
  const std::size_t n = std::min(a.times_seconds.size(), b.times_seconds.size());
  if (n < 2) return false;
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const double d = of_life(objective, b, k) - of_life(objective, a, k);
    if (!std::isfinite(d)) return false;
    sum += d;
    squares += d * d;
  }
  const double mean = sum / double(n);
  const double variance = std::max(0.0, (squares - sum * mean) / double(n - 1));
  return mean > z * std::sqrt(variance / double(n)) && mean > 0;
}

std::size_t ranks_certain(const Question& question, const std::vector<Evaluated>& ranked,
                          double z) {
  std::size_t certain = 0;
  while (certain + 1 < ranked.size() && ranked[certain].meets_all() &&
         (!ranked[certain + 1].meets_all() ||
          certainly_less(question.objective, ranked[certain].forecast, ranked[certain + 1].forecast,
                         z)))
    ++certain;
  return certain;
}

}  // namespace reckon::planner
