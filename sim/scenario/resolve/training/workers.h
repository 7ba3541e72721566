#pragma once
#include "sim/scenario/scenario.h"

// How many processes compute: the rules of make_plan, for those who choose a strategy too.
namespace reckon::planning {

/// Accelerators that one worker process drives on nodes of so many: what the strategy says; else
/// one, where it is for one or for parameter servers; else all of a node. 0: it computes on CPUs.
int accelerators_per_worker(const StrategySpec& strategy, int per_node);

/// Workers that so many nodes hold.
int workers_on(int nodes, int per_node, int accelerators_per_worker);

/// Has it one worker, however many nodes there are? Slices: a slice is one.
bool has_one_worker(StrategyKind kind, bool on_slice);

}  // namespace reckon::planning
