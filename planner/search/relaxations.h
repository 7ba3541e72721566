#pragma once
#include <vector>

#include "planner/planner.h"

// Limits that leave a candidate out before it is forecast: quotas, the number of nodes, memory,
// residency, carbon. Each alone is lifted and the search's space made anew; of what then fits, the
// candidate that needs the limit to give way least.
namespace reckon::planner {

/// In the order above; of each limit that left something out at most one.
std::vector<Relaxation> early_relaxations(const SearchSetting& setting, const Answer& answer);

/// "the closest needs 30.1 GiB of 24 GiB"; "": nothing was left out for memory.
std::string closest_in_memory(const Space& space);

}  // namespace reckon::planner
