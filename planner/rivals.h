#pragma once
#include <cstddef>
#include <vector>

#include "planner/ranked.h"

// What else could be run: the plans that a choice is held against when a number changes.
namespace reckon::planner {

/// Of the forecast plans behind the first, best first: the best of each hardware, pricing, number
/// of nodes and kind of strategy, at most `most`. `finished` stands best first.
std::vector<RankedPlan> rivals_of(const Space& space, const std::vector<Evaluated>& finished,
                                  std::size_t most);

/// The same machines and layout bought elsewhere or otherwise, within the question's regions,
/// pricing and quotas: for each pricing the cheapest other place. Not forecast yet (`result` has
/// the overrides only). The planner leaves dearer places out; a change of price brings them back.
std::vector<RankedPlan> bought_otherwise(const Question& question, const RankedPlan& plan,
                                         const Catalog& catalog);

}  // namespace reckon::planner
