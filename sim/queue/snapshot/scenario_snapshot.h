#pragma once
#include "sim/queue/snapshot/snapshot.h"
#include "sim/queue/trace.h"
#include "sim/scenario/scenario.h"

namespace reckon {

/// The cluster of a queue scenario with nothing on it: nodes POOL-0, POOL-1, ... and its scheduler.
/// Its jobs, recorded or drawn once, are the history, whose like comes later. nullopt: `question`
/// is of no jobs with a length.
std::optional<ClusterSnapshot> snapshot_of(const Scenario& scenario, const TraceQuestion& question);

}  // namespace reckon
