#pragma once
#include <string>
#include <vector>

#include "planner/search/evaluate.h"

namespace reckon::planner {

/// A plan in the words of the answer.
struct RankedPlan {
  Evaluated result;
  Hardware hardware;
  Split split;
  Offer offer;
  bool in_front = false;             // no other forecast plan is both faster and cheaper
  std::vector<std::string> binding;  // limits that keep a better score away: "deadline", "budget"
  std::vector<RankedPlan> equals;    // on the same nodes, within kEqualWithin (answer/rows.h)
};

/// The candidate's hardware, split and offer beside its forecast.
RankedPlan ranked(const Space& space, Evaluated evaluated);

/// The plan in full, as `reckon simulate` would make it.
Expected<Plan> resolve(const Question& question, const RankedPlan& plan, const Catalog& catalog);

/// The same machine, accelerators and slice.
bool same_hardware(const Hardware& a, const Hardware& b);

}  // namespace reckon::planner
