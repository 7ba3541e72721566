#pragma once
#include <optional>
#include <span>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/queue/kueue/quotas.h"

// Whom a workload evicts (https://kueue.sigs.k8s.io/docs/concepts/preemption).
namespace reckon {

/// A workload that is admitted, or wants to be.
struct KueueWorkload {
  std::size_t job = 0, queue = 0;
  int gpus = 0, priority = 0;
  SimTime submit{}, admitted{};
  int pool = KueueQuotas::kNoFlavor;
  bool stays = false;  // nobody may evict it
};

/// The workloads, of those admitted, that have to go so that `wants` fits on `pool`; empty: there
/// are none that may. `quotas` are as before when it returns.
/// Without `strategies` "Classic Preemption": candidates are of its own queue by
/// withinClusterQueue, and of queues that borrow by reclaimWithinCohort, the latter first, then the
/// lowest priority, then the last admitted. With all candidates in the own queue they go until it
/// fits, borrowing or not; else if the queue uses less than its nominal quota they go until it fits
/// without borrowing; else only those of its own queue go. With borrowWithinCohort they go until it
/// fits, borrowing or not, but of other queues only such below its own priority and up to
/// maxPriorityThreshold; above that, where the queue is below its nominal quota, without borrowing.
/// With strategies "Fair Sharing": from the place with the highest share value, from the root of
/// the cohorts down to a queue, where the strategy allows.
/// All put back, in reverse, whom they do not take.
std::vector<std::size_t> preemption_targets(const KueueWorkload& wants, int pool,
                                            std::span<const KueueWorkload> admitted,
                                            const KueuePreemptionSpec& rules,
                                            std::span<const ShareStrategy> strategies,
                                            KueueQuotas& quotas);

}  // namespace reckon
