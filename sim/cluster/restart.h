#pragma once
#include "sim/cluster/job_request.h"

// What is left of a job's work after a loss, by how it restarts and where its checkpoints are:
// rules for the simulation and for who explains it (docs/models/cluster.md, "Restarts").
namespace reckon {

/// What goes at one time.
enum class Loss {
  process,  // its node stays
  node,
  nodes  // several before the job trains again: a rack, a zone, or two by chance
};

/// Who holds the state from which the job goes on.
enum class Kept {
  processes,   // those that are left: the step under way is lost
  local_tier,  // the nodes: the work since the last complete checkpoint on them is lost
  storage      // the work since the last complete checkpoint there is lost
};

/// `keeps_state`: the processes that are left hold all of it (RestartRules::copies_hold_all, and a
/// copy is on other nodes). Several nodes at once may be the two that hold the same part: that is
/// taken to be so, which makes rack and zone losses certain and overstates what two by chance lose.
Kept kept_after(RestartKind kind, bool keeps_state, const LocalTierPace& local, Loss loss);

/// Do the processes that are left hold all of the job's state when a node of it goes?
bool keeps_state(const PlannedCluster& cluster, const JobRequest& job);

}  // namespace reckon
