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
  // As in plan_strategy.cpp: a chief without the accelerators that workers have only coordinates.
  const auto coordinates = [&](const PlannedPool& chief) {
    return std::ranges::any_of(plan.pools, [&](const PlannedPool& pool) {
      return pool.role == Role::worker &&
             (pool.slice.has_value() > chief.slice.has_value() ||
              pool.accelerator.has_value() != chief.accelerator.has_value());
    });
  };
  if (const auto* chief = pool_of(plan, Role::chief); chief != nullptr && !coordinates(*chief))
    pools.push_back(chief);
  for (const auto& pool : plan.pools)
    if (pool.role == Role::worker && !pool.stands_in_for) pools.push_back(&pool);
  RECKON_CHECK(!pools.empty());
  return pools;
}

}  // namespace reckon
