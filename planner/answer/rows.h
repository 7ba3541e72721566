#pragma once
#include <string>
#include <vector>

#include "planner/search/ranked.h"

// From forecasts to the rows of an answer: equal plans are one row, and beside the best stand the
// best of each provider, of each way of buying, and in half the time.
namespace reckon::planner {

/// Forecasts on the same nodes in the same place, bought alike, whose mean time and mean cost
/// differ by less than this share are one row.
inline constexpr double kEqualWithin = 0.01;  // 0..1

/// Of the forecasts that meet all limits the best of each set of equal ones, best first, at most
/// `most`, each with those that equal it. `finished` stands best first.
std::vector<RankedPlan> rows_of(const Space& space, const std::vector<Evaluated>& finished,
                                std::size_t most);

/// The best plan under one more wish.
struct BestBy {
  std::string what;  // "on gcp", "on_demand", "in half the time", "at half the cost"
  RankedPlan plan;
};
/// Of each provider and way of buying that no forecast which meets all limits has: the most
/// promising candidate.
std::vector<Candidate> wanted_for_best_by(const Space& space,
                                          const std::vector<Evaluated>& finished);
/// That is not among `rows` already. The best in half the time takes at most half of the first's
/// 95th percentile; where the objective is time, the best at half the cost.
std::vector<BestBy> best_by(const Space& space, Objective objective,
                            const std::vector<Evaluated>& finished,
                            const std::vector<RankedPlan>& rows);

/// Ends of a front (fastest first) that nobody takes are left out: of two neighbours the outer one
/// whose last 1 % of time costs more than 5 %, or whose last 1 % of cost takes more than 5 % of
/// time. A point within 5 % in time of the next cheaper one that is shown goes too. `best` stays,
/// and so do two points.
std::vector<RankedPlan> without_absurd_ends(std::vector<RankedPlan> front, const Candidate* best);

}  // namespace reckon::planner
