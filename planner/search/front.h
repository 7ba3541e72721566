#pragma once
#include <vector>

#include "planner/search/evaluate.h"
#include "planner/search/outlook.h"

// Time against cost.
namespace reckon::planner {

/// Candidates that by the closer look are on the front, at most `most`, spread over it, and besides
/// those next to `best`: what is forecast so that the front is more than the neighbourhood of the
/// best score, and the next cheaper and the next faster are the next.
std::vector<Candidate> estimated_front(const Space& space, Outlook& outlook, std::size_t most,
                                       const Candidate* best = nullptr);

/// Of the forecasts with a price that end: those that no other is both faster and cheaper than
/// (means), fastest first.
std::vector<Evaluated> pareto_front(const std::vector<Evaluated>& evaluated);

}  // namespace reckon::planner
