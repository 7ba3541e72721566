#include "sim/cluster/restart.h"

#include <algorithm>

#include "sim/cluster/placement.h"
#include "sim/scenario/restart.h"

namespace reckon {

Kept kept_after(RestartKind kind, bool keeps_state, const LocalTierPace& local, Loss loss) {
  if (loss == Loss::nodes) return Kept::storage;
  if (kind != RestartKind::full && keeps_state) return Kept::processes;
  if (local.every.count() > 0 && (loss == Loss::process || local.outlives_node))
    return Kept::local_tier;
  return Kept::storage;
}

bool keeps_state(const PlannedCluster& cluster, const JobRequest& job) {
  int most = 1;  // workers on one node
  for (const PoolShare& share : place_gang(cluster, job).pools)
    if (share.workers > 0) most = std::max(most, share.workers_per_node);
  return job.restart.copies_hold_all &&
         a_copy_is_left(job.workers, job.restart.workers_of_a_copy, most);
}

}  // namespace reckon
