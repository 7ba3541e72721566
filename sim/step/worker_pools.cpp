#include "sim/step/worker_pools.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {

const PlannedPool* pool_of(const Plan& plan, Role role) {
  for (const auto& pool : plan.pools)
    if (pool.role == role) return &pool;
  return nullptr;
}

std::vector<const PlannedPool*> worker_pools(const Plan& plan) {
  std::vector<const PlannedPool*> pools;
  const bool slices = std::ranges::any_of(plan.pools, [](const PlannedPool& pool) {
    return pool.role == Role::worker && pool.slice.has_value();
  });
  if (const auto* chief = pool_of(plan, Role::chief); chief != nullptr && (!slices || chief->slice))
    pools.push_back(chief);
  for (const auto& pool : plan.pools)
    if (pool.role == Role::worker && !pool.stands_in_for) pools.push_back(&pool);
  RECKON_CHECK(!pools.empty());
  return pools;
}

}  // namespace reckon
