#pragma once
#include "planner/space/space.h"

// The plan of one kind of hardware, resolved again for each way to train on it.
namespace reckon::planner {

class HardwarePlan {
 public:
  HardwarePlan(const Question& question, const Hardware& hardware, const Catalog& catalog);
  /// A first plan that make_plan takes whatever the batch and the layout are. What is wrong, if it
  /// does not.
  Diagnostics make();
  /// The plan of a split on fixed nodes that are bought alike: the scenario of such a candidate,
  /// resolved by the parts of make_plan. What is wrong with it.
  Diagnostics take(const Split& split);

  Plan plan;
  ScenarioFile file;       // that the plan is of
  std::size_t worker = 0;  // index of the computing pool
  int servers = 0;         // parameter servers, where the question leaves them as they are
  PlannedWorkload& job() { return plan.only_job(); }
  PlannedPool& workers() { return plan.pools[worker]; }

 private:
  const Question& q_;
  const Hardware& h_;
  const Catalog& catalog_;
  Offer offer_;
};

/// Spot, if it may be: a plan has the law of reclaims only where a pool is spot.
CapacityType riskiest(const std::vector<CapacityType>& pricing);

}  // namespace reckon::planner
