#pragma once
#include <cstddef>
#include <vector>

#include "planner/levers.h"
#include "planner/search/ranked.h"

// What else could be run: the plans that a choice is held against when a number changes.
namespace reckon::planner {

/// Of the forecast plans behind the first, best first: the best of each hardware, pricing, number
/// of nodes and kind of strategy, at most `most`. `finished` stands best first.
std::vector<RankedPlan> rivals_of(const Space& space, const std::vector<Evaluated>& finished,
                                  std::size_t most);

/// A plan that a lever may make better than the choice, whatever it is now.
struct LeverRival {
  RankedPlan plan;  // not forecast yet: `result` has the changes only
  std::vector<Lever> levers;
};
/// Such plans, which the search need not have looked at closely, because they lag as things are: by
/// the quick look the best of other goods or bought otherwise (prices), without spot nodes
/// (reclaims), of fewer and of more nodes and with the least bound, which no interruption and no
/// network stands in (reclaims, network).
std::vector<LeverRival> lever_rivals(const Question& question, const Space& space,
                                     const RankedPlan& chosen);

/// The same machines and layout bought elsewhere or otherwise, within the question's regions,
/// pricing and quotas: for each pricing the cheapest other place. Not forecast yet (`result` has
/// the changes only). The planner leaves dearer places out; a change of price brings them back.
std::vector<RankedPlan> bought_otherwise(const Question& question, const RankedPlan& plan,
                                         const Catalog& catalog);

}  // namespace reckon::planner
