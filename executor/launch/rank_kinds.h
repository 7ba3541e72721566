#pragma once
#include <vector>

#include "sim/scenario/plan.h"

namespace reckon {

/// By rank, for SlowRanks (sim/measurement/slow_ranks.h): those of one kind do the same work on
/// machines of one pool. Stages of a pipeline are of different kinds, and so is a chief with a pool
/// of its own.
std::vector<int> kinds_of_ranks(const Plan& plan, const PlannedWorkload& job);

}  // namespace reckon
