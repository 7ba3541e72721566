#pragma once
#include <string>
#include <vector>

#include "planner/controls.h"
#include "planner/question.h"
#include "planner/space/space.h"
#include "sim/step/network/network.h"

// A question's scenario with one thing changed, as words of --set.
namespace reckon::planner {

/// That stand by, beside those of the job.
int spares_now(const Scenario& s);
/// The job's number of nodes; of a pool that starts empty its most.
int nodes_now(const Scenario& s);
/// The split that is most like the scenario's, of equals the fastest; nullptr: there is none.
const Split* most_alike(const std::vector<Split>& splits, const StrategySpec& now);

class Variants {
 public:
  /// All three must outlive it.
  Variants(const Question& question, const Catalog& catalog, const NetworkModel& network);

  /// Of the scenario: its nodes, and what they are.
  int nodes() const { return now_; }
  const Hardware& own() const { return own_; }

  /// The scenario as it is, without limits.
  const Question& as_it_is() const { return tried_; }
  /// The same on its own hardware.
  Question only_own() const;
  /// Kinds of node and places: the question's, else what the provider sells in the region.
  Question with_hardware(bool everywhere) const;

  /// What is most like the scenario on so many nodes of that kind, as words of --set, or why not.
  ControlOption on(const Hardware& h, int nodes) const;
  /// With the split, and bought as the pool is.
  std::vector<std::string> words_for(const Question& question, const Hardware& h,
                                     const Split& split) const {
    return words_for(question, h, offer_, split);
  }

 private:
  const Scenario& scenario() const { return q_.file.scenario; }
  const ClusterSpec& cluster() const { return scenario().cluster; }
  void keep_batch();
  void set_pool_bounds();
  std::vector<std::string> words_for(const Question& question, const Hardware& h,
                                     const Offer& offer, const Split& split) const;

  const Question& q_;
  const Catalog& catalog_;
  const NetworkModel& network_;
  const int now_;
  Question tried_;
  Hardware own_;
  Offer offer_;  // as the pool is bought
};

}  // namespace reckon::planner
