#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/levers.h"
#include "planner/question.h"
#include "sim/scenario/plan.h"
#include "sim/step/network/network.h"

// Plans under a factor of a lever, of whose lives no more are lived than are needed.
namespace reckon::planner {

/// A plan that is compared with the choice, and the choice itself.
struct Contender {
  RankedPlan plan;
  Plan resolved;
  std::vector<Lever> levers;          // of which it is an alternative
  Evaluated base;                     // without a factor
  std::vector<double> usd_per_price;  // of each life, for each time the price; empty: none
};

class LeverTrials {
 public:
  LeverTrials(const Question& question, const NetworkModel& network, std::uint64_t seed,
              int replications, int threads)
      : question_(question),
        network_(network),
        seed_(seed),
        replications_(replications),
        threads_(threads) {}

  /// What each is with the factor, over so many replications; the first is the choice. nullopt: it
  /// cannot be better than the choice, or hardly.
  std::vector<std::optional<Evaluated>> outcomes(Lever lever, double factor,
                                                 const std::vector<const Contender*>& all) const;

 private:
  struct Trial;
  using Numbers = std::vector<std::size_t>;
  void begin(Trial& trial, const Contender& e, const Contender& choice, Lever lever,
             double factor) const;
  Evaluated outcome(const Trial& trial, const Contender& choice, Lever lever, double factor) const;
  Evaluated at_price(const Contender& e, double factor) const;
  void live(const std::vector<Trial*>& trials, const std::vector<Numbers>& which,
            bool all_must_end) const;
  void live_all(const std::vector<Trial*>& trials, bool all_must_end) const;
  bool first_lives_are_worse(const Trial& trial, const Evaluated& choice) const;
  bool longest_lives_are_worse(const Trial& trial, const Numbers& longest,
                               const Evaluated& choice) const;
  void give_up_hopeless(const std::vector<Trial*>& rivals, const Evaluated& choice) const;

  const Question& question_;
  const NetworkModel& network_;
  std::uint64_t seed_;
  int replications_;
  int threads_;
};

}  // namespace reckon::planner
