#pragma once
#include <functional>
#include <vector>

#include "planner/search/evaluate.h"

// From all candidates to the best few: what a bound proves worse than the best so far is dropped;
// the rest is forecast whole where it is little enough (the answer is then exact), else raced:
// few replications for many, more for those that stay [successive halving: Karnin, Koren and
// Somekh 2013, "Almost optimal exploration in multi-armed bandits", Sec. 3], all under common
// random numbers.
namespace reckon::planner {

/// Where a search stands.
struct SearchProgress {
  std::int64_t considered = 0, pruned = 0;  // looked at; left out by a rule, a limit or a bound
  std::size_t racing = 0;
  double best = 0;  // score of the best so far (score_of()); infinite: none
};

struct RaceOptions {
  std::size_t exact_up_to = 48;  // so many candidates are all forecast whole
  std::size_t starters = 64;     // of a race
  std::size_t finalists = 8;     // forecast whole at its end
  bool prune = true;             // by bounds, on the score and against limits
  std::function<void(const SearchProgress&)> progress;
};

struct RaceResult {
  std::vector<Evaluated> finished;  // forecast with all replications, best first
  bool exact = false;               // no candidate can be better than the first, under this seed
  std::int64_t proven_worse = 0;    // dropped by a bound on the objective
  std::int64_t proven_late = 0, proven_dear = 0;
  std::int64_t not_tried = 0;   // open, ranked by the step model only
  std::int64_t outrun = 0;      // eliminated by successive halving
  double least_open_bound = 0;  // of the untried and eliminated: no score is below; 0: none
};
RaceResult race(const Space& space, Evaluator& evaluator, const RaceOptions& options);

/// Is `a` less than `b` in the mean of what the objective averages, by more than `z` standard
/// errors of the paired difference, over the replications that both have? Both must have drawn from
/// the same streams.
bool certainly_less(Objective objective, const Forecast& a, const Forecast& b, double z);

/// First ranks whose order is certain: of each pair of neighbours the difference of the means of
/// the score's metric over the replications is beyond `z` standard errors of the paired
/// difference. 1.96: 95 %.
std::size_t ranks_certain(const Question& question, const std::vector<Evaluated>& ranked, double z);

}  // namespace reckon::planner
