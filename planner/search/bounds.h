#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "planner/question.h"
#include "planner/space/site.h"

// Lower bounds on what the forecast of a candidate will say, replication by replication, without
// living a life.
//
// Let W = steps x step at the medians. In replication k the forecast multiplies every step by
// factors f_a(k) = e_a^|s|, one for each assumed number a that the step rests on: s is the draw's
// score (the same for every candidate that rests on a: common random numbers), e_a the step with a
// at the end of its range over the step at a's median (sim/forecast/replicate.h). The step is made
// of sums, maxima and minima of terms that are proportional to a, to 1/a, or free of it, so with r
// = end / median:
//
//   e_a >= min(r, 1/r),  and e_a >= 1 where a goes to its slower end
//
// (slower: less of a speed, more of a size or a wait). The residual spread of the fit multiplies
// every step as it is drawn, that of the law of training to an accuracy their number. Hence in
// replication k
//
//   time(k) >= S(k) + W x G(k),      G(k) = spread(k) x product over a of min(r, 1/r)^|s| or 1
//   cost(k) >= (S(k) + W x G(k)) x P(k) x (price of the gang's nodes, at its median)
//
// S(k) is what every node needs once before a job works on it: to pull the image and to start the
// framework, as drawn. P(k) is the least factor that the replication draws on a price of the offer
// (a market's factor is the same for every candidate that buys there; 1 where a reservation holds
// some). The two hold because waiting, evaluating, saving, restoring and work done twice only add
// time, and the provider charges every node for at least the time in which it started and the gang
// worked (it rounds up). Of a mean, S and G have their means; of a quantile, the least S stands for
// it.
//
// The second does not hold, and 0 stands for it, for asynchronous training, which goes on with
// fewer nodes, and for spot nodes whose first minutes are free in those replications in which a new
// node could work within them (pulling the image and starting the framework take what was drawn).
// A quantile or a mean over k of something larger in every k is larger.
//
// Where other pools replace the workers' own, as under Karpenter, the price is that of the
// cheapest. A gang that mixes B base nodes with S spot nodes pays for both; where on-demand nodes
// may replace the spot ones, for S of the cheaper of the two. With G0(k) = G(k), or 0 where
// spot work may be free, both G(k) B and G0(k) (B + S) are below what it pays: the larger statistic
// holds.
namespace reckon::planner {

/// Scores of all replications by assumption, drawn once for all candidates.
class Draws {
 public:
  Draws(std::uint64_t seed, int replications) : seed_(seed), replications_(replications) {}
  /// Of all that the site's bounds rest on. Before it is asked for them.
  void draw(const Site& site);
  const std::vector<double>& scores(const PlanAssumption& assumption) const;  // in half-ranges
  int replications() const { return replications_; }
  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  int replications_;
  std::map<std::string, std::vector<double>> by_key_;  // scores by replication
};

/// The least of `start + work x factor` over k, in one statistic.
struct LeastStatistic {
  double start = 0, factor = 0;  // seconds; a ratio (of money: both times the price factor)
  double of(double work_seconds) const { return start + work_seconds * factor; }
};
/// Of S and G over k.
struct LeastStatistics {
  LeastStatistic mean, p95;
  LeastStatistic at_deadline, at_budget;  // in the limits' statistics; 0 without a limit
};
struct LeastFactors {
  LeastStatistics time;  // of S and G
  struct Cost {
    std::vector<PriceSpread> markets;
    LeastStatistics certain;  // of S P and G P
    LeastStatistics spot;     // with 0 in the replications in which work may have been free
  };
  std::vector<Cost> costs;  // of every set of markets in which the site's offers buy
  const Cost& cost_in(const std::vector<PriceSpread>& markets) const;  // CHECKed: there is one
};
/// `draws` has drawn for the site. May be called from several threads.
LeastFactors least_factors(const Question& question, const Site& site, const Draws& draws);

struct Bounds {
  double score = 0;                 // score_of(): seconds, USD or USD x seconds
  double deadline = 0, budget = 0;  // of what the limits are held against: seconds, USD
};
Bounds bounds_of(const Question& question, const Site& site, const LeastFactors& least,
                 const Split& split, const Offer& offer);

}  // namespace reckon::planner
