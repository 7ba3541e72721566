#include "sim/cluster/restart.h"

namespace reckon {

Kept kept_after(RestartKind kind, bool keeps_state, const LocalTierPace& local, Loss loss) {
  if (loss == Loss::nodes) return Kept::storage;
  if (kind != RestartKind::full && keeps_state) return Kept::processes;
  if (local.every.count() > 0 && (loss == Loss::process || local.outlives_node))
    return Kept::local_tier;
  return Kept::storage;
}

}  // namespace reckon
