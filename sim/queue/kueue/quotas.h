#pragma once
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/scenario_scheduler.h"

// GPUs of Kueue's ClusterQueues and their cohorts, by flavor, and how many of them are in use.
namespace reckon {

/// What a cohort lends is what its queues do not keep to themselves: nominalQuota, or lendingLimit
/// where it is less (https://kueue.sigs.k8s.io/docs/concepts/cluster_queue, "Cohort",
/// "BorrowingLimit", "LendingLimit"). Flat cohorts without quotas of their own.
class KueueQuotas {
 public:
  /// Flavors are pools, by number in `pools`. Needs flavors that are pools.
  KueueQuotas(std::span<const ClusterQueueSpec> queues, std::span<const std::string> pools);

  static constexpr int kNoFlavor = -1;
  std::size_t queues() const { return queues_.size(); }
  /// Of a queue, in its order: pools.
  std::span<const int> flavors(std::size_t queue) const { return queues_[queue].pools; }
  bool same_cohort(std::size_t a, std::size_t b) const {
    return a == b || (queues_[a].cohort >= 0 && queues_[a].cohort == queues_[b].cohort);
  }
  /// GPUs of the pool that the queue can still have, from itself and its cohort.
  int available(std::size_t queue, int pool) const;
  /// The same with nothing in use.
  int most(std::size_t queue, int pool) const;
  int nominal(std::size_t queue, int pool) const { return of(queue, pool).nominal; }
  int in_use(std::size_t queue, int pool) const { return of(queue, pool).used; }
  bool defines(std::size_t queue, int pool) const { return index(queue, pool) >= 0; }
  /// With so many GPUs more: does it use more than its nominal quota?
  bool borrows(std::size_t queue, int pool, int more = 0) const {
    return in_use(queue, pool) + more > nominal(queue, pool);
  }
  void use(std::size_t queue, int pool, int gpus);

  /// The share value of fair sharing, with so many GPUs more of the pool: GPUs borrowed over those
  /// that the cohort lends, over the queue's weight
  /// (https://kueue.sigs.k8s.io/docs/concepts/preemption, "ClusterQueue share value").
  double share(std::size_t queue, int pool = kNoFlavor, int more = 0) const;

 private:
  struct Quota {
    int nominal = 0, kept = 0;  // kept: lent to nobody
    int borrowing = std::numeric_limits<int>::max();
    int used = 0;
  };
  struct Queue {
    int cohort = -1;
    double weight = 1;
    std::vector<int> pools;
    std::vector<Quota> quotas;  // in the order of pools
  };
  int index(std::size_t queue, int pool) const;
  const Quota& of(std::size_t queue, int pool) const {
    return queues_[queue].quotas[static_cast<std::size_t>(index(queue, pool))];
  }
  int available_of(const Queue& queue, const Quota& quota, int used, int lent, int taken) const;

  std::vector<Queue> queues_;
  std::vector<std::vector<int>> lent_;   // by cohort and pool: GPUs that its queues lend
  std::vector<std::vector<int>> taken_;  // of those
};

}  // namespace reckon
