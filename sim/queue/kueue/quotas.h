#pragma once
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/spec/scheduler.h"

// GPUs of Kueue's ClusterQueues and their cohorts, by flavor, and how many of them are in use.
namespace reckon {

/// What Kubernetes calls whole GPUs.
inline constexpr const char* kWholeGpus = "nvidia.com/gpu";
/// Is that the resource of a pool? `said`: of a flavor, "": whatever the pool has; `of_pool`: as in
/// NodeGroup.
bool is_resource(const std::string& said, const std::string& of_pool);

/// What a cohort lends is what those in it do not keep to themselves: nominalQuota, or lendingLimit
/// where it is less (https://kueue.sigs.k8s.io/docs/concepts/cluster_queue, "Cohort",
/// "BorrowingLimit", "LendingLimit"). A cohort may have quotas of its own and stand below another,
/// from which it borrows as a queue does (https://kueue.sigs.k8s.io/docs/concepts/cohort).
class KueueQuotas {
 public:
  /// Flavors are pools, by number in `pools`; one with several resources stands there once for
  /// each, and `resources` says which ("": whole GPUs; the list is empty where no pool has
  /// several). Needs flavors that are there, and cohorts of which none is above itself.
  KueueQuotas(const KueueSpec& kueue, std::span<const std::string> pools,
              std::span<const std::string> resources = {});

  static constexpr int kNoFlavor = -1;
  std::size_t queues() const { return root_.size(); }
  /// Of a queue, in its order: pools.
  std::span<const int> flavors(std::size_t queue) const { return places_[queue].pools; }
  /// Of the same cohort, or of cohorts below one.
  bool same_cohort(std::size_t a, std::size_t b) const { return a == b || root_[a] == root_[b]; }
  /// GPUs of the pool that the queue can still have, from itself and its cohort.
  int available(std::size_t queue, int pool) const { return available_of(queue, pool, true); }
  /// The same with nothing in use.
  int most(std::size_t queue, int pool) const { return available_of(queue, pool, false); }
  int nominal(std::size_t queue, int pool) const { return quota(queue, pool).nominal; }
  int in_use(std::size_t queue, int pool) const { return quota(queue, pool).used; }
  bool defines(std::size_t queue, int pool) const;
  /// With so many GPUs more: does it use more than its nominal quota?
  bool borrows(std::size_t queue, int pool, int more = 0) const {
    return in_use(queue, pool) + more > nominal(queue, pool);
  }
  void use(std::size_t queue, int pool, int gpus);

  /// Queues and cohorts are places: queues by their number, then cohorts. kNoPlace: none is above.
  static constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);
  std::size_t above(std::size_t place) const {
    const int parent = places_[place].parent;
    return parent < 0 ? kNoPlace : static_cast<std::size_t>(parent);
  }
  std::size_t root(std::size_t queue) const { return static_cast<std::size_t>(root_[queue]); }
  std::span<const std::size_t> below(std::size_t place) const { return places_[place].below; }
  /// Of a queue and those above it, the one right below `cohort`, which is above the queue.
  std::size_t child_towards(std::size_t cohort, std::size_t queue) const;
  /// Where fair sharing compares two queues of a cohort: the places right below the nearest cohort
  /// that is above both, on the way to `a` and to `b`.
  std::pair<std::size_t, std::size_t> compared(std::size_t a, std::size_t b) const;

  /// The share value of fair sharing of a queue or a cohort: GPUs in use beyond its quotas, over
  /// those that the cohort above it could have for lending, of the resource with the highest such
  /// ratio, over its weight; 0: nothing is above it
  /// (https://kueue.sigs.k8s.io/docs/concepts/preemption, "ClusterQueue share value";
  /// https://kueue.sigs.k8s.io/docs/concepts/cohort, for cohorts below cohorts).
  double share(std::size_t place) const;
  /// The same if the queue, which it is or which is below it, used so many GPUs more.
  double share_with(std::size_t place, std::size_t queue, int pool, int more);

 private:
  static constexpr int kNoLimit = std::numeric_limits<int>::max();
  /// GPUs of a pool at a queue or a cohort.
  struct Quota {
    int nominal = 0;
    int subtree = 0;  // and what those below lend
    int kept = 0;     // of it, lent to nobody above
    int borrowing = kNoLimit;
    int used = 0;  // of a cohort, what those below use beyond what they keep
  };
  /// A queue or a cohort; queues first.
  struct Place {
    int parent = -1;
    double weight = 1;
    std::vector<std::size_t> below;
    std::vector<int> pools;     // of a queue, its flavors
    std::vector<Quota> quotas;  // by pool
  };
  const Quota& quota(std::size_t place, int pool) const {
    return places_[place].quotas[static_cast<std::size_t>(pool)];
  }
  int available_of(std::size_t place, int pool, bool beside_use) const;
  int cohort_named(const std::string& name, const KueueSpec& kueue, std::size_t pools);

  std::vector<Place> places_;
  std::vector<std::vector<std::size_t>> pools_of_resource_;
  std::vector<std::pair<std::string, int>> cohorts_;  // place by name
  std::vector<int> root_;                             // by queue
};

}  // namespace reckon
