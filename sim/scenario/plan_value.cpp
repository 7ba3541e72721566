#include "sim/scenario/plan.h"

// What a finished Plan answers about itself; needs nothing of how it was made.
namespace reckon {

const PlannedPool* Plan::pool_with(Role role) const {
  for (const PlannedPool& pool : pools)
    if (pool.role == role) return &pool;
  return role == Role::worker ? pool_with(Role::chief) : nullptr;
}

}  // namespace reckon
