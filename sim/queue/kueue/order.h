#pragma once
#include <vector>

#include "sim/queue/kueue/preemption.h"

// In which order the heads of Kueue's ClusterQueues are admitted.
namespace reckon {

/// A workload and the flavor that it would get.
struct KueueNomination {
  KueueWorkload workload;
  bool borrows = false;
  std::vector<std::size_t> targets;  // whom it evicts
};

/// Those that do not borrow first, then the higher priority, then the older.
void sort_by_borrowing(std::vector<KueueNomination>& nominations);

/// Under fair sharing the next of those not `done`, of which there is one: a tournament from the
/// queues up. In each cohort that nomination wins whose queue or cohort right below has the lowest
/// share value with it (Kueue's fair_sharing_iterator.go), of equals the higher priority, then the
/// older. At most one is of a queue. `quotas` are as before when it returns.
std::size_t next_of_fair(const std::vector<KueueNomination>& nominations,
                         const std::vector<bool>& done, KueueQuotas& quotas);

}  // namespace reckon
