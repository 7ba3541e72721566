#include "sim/base/check.h"
#include "sim/step/step.h"

namespace reckon {

const StepEstimate& StepCache::at(int live_workers) {
  RECKON_CHECK(live_workers >= 0);
  const auto slot = std::size_t(live_workers);
  if (slot >= by_workers_.size()) by_workers_.resize(slot + 1);
  auto& cached = by_workers_[slot];
  if (!cached) cached = estimate_step(plan_, job_, network_, live_workers);
  return *cached;
}

}  // namespace reckon
