#include "sim/queue/kueue/preemption.h"

#include <algorithm>
#include <tuple>

namespace reckon {
namespace {

/// Takes workloads out of the quotas one by one, and puts all back at the end.
class TakenOut {
 public:
  explicit TakenOut(KueueQuotas& quotas) : quotas_(quotas) {}
  TakenOut(const TakenOut&) = delete;
  TakenOut& operator=(const TakenOut&) = delete;
  ~TakenOut() {
    for (const KueueWorkload* w : out_) quotas_.use(w->queue, w->pool, w->gpus);
  }
  void take(const KueueWorkload& w) {
    quotas_.use(w.queue, w.pool, -w.gpus);
    out_.push_back(&w);
  }
  /// In reverse, those without which `fits` still holds go back; the jobs of the others.
  template <class Fits>
  std::vector<std::size_t> fewest(Fits fits) {
    for (std::size_t k = out_.size(); k-- > 0;) {
      const KueueWorkload* w = out_[k];
      quotas_.use(w->queue, w->pool, w->gpus);
      if (fits())
        out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(k));
      else
        quotas_.use(w->queue, w->pool, -w->gpus);
    }
    std::vector<std::size_t> jobs;
    for (const KueueWorkload* w : out_) jobs.push_back(w->job);
    return jobs;
  }

 private:
  KueueQuotas& quotas_;
  std::vector<const KueueWorkload*> out_;
};

bool is_candidate(const KueueWorkload& wants, int pool, const KueueWorkload& other,
                  const KueuePreemptionSpec& rules, const KueueQuotas& quotas) {
  if (other.pool != pool || other.stays) return false;
  if (other.queue == wants.queue) {
    if (rules.within_cluster_queue == WithinPolicy::never) return false;
    if (other.priority != wants.priority) return other.priority < wants.priority;
    return rules.within_cluster_queue == WithinPolicy::lower_or_newer_equal &&
           other.submit > wants.submit;
  }
  if (rules.reclaim_within_cohort == ReclaimPolicy::never) return false;
  if (!quotas.same_cohort(wants.queue, other.queue) || !quotas.borrows(other.queue, pool))
    return false;
  return rules.reclaim_within_cohort == ReclaimPolicy::any || other.priority < wants.priority;
}

std::vector<const KueueWorkload*> candidates_of(const KueueWorkload& wants, int pool,
                                                std::span<const KueueWorkload> admitted,
                                                const KueuePreemptionSpec& rules,
                                                const KueueQuotas& quotas) {
  std::vector<const KueueWorkload*> found;
  for (const KueueWorkload& other : admitted)
    if (is_candidate(wants, pool, other, rules, quotas)) found.push_back(&other);
  std::sort(found.begin(), found.end(), [&](const KueueWorkload* a, const KueueWorkload* b) {
    const bool own_a = a->queue == wants.queue, own_b = b->queue == wants.queue;
    return std::tie(own_a, a->priority, b->admitted, b->job) <
           std::tie(own_b, b->priority, a->admitted, a->job);
  });
  return found;
}

/// Priorities of other queues' jobs that may be preempted while borrowing are below it; nullopt:
/// none are (canBorrowWithinCohort() of Kueue's preemption.go).
std::optional<int> borrowing_threshold(const KueueWorkload& wants,
                                       const KueueBorrowWithinSpec& rule) {
  if (rule.policy == BorrowWithinPolicy::never) return std::nullopt;
  if (rule.max_priority_threshold && *rule.max_priority_threshold < wants.priority)
    return *rule.max_priority_threshold + 1;
  return wants.priority;
}

std::vector<std::size_t> classic(const KueueWorkload& wants, int pool,
                                 std::vector<const KueueWorkload*> candidates,
                                 const KueueBorrowWithinSpec& borrow_within, KueueQuotas& quotas) {
  const auto is_own = [&](const KueueWorkload* w) { return w->queue == wants.queue; };
  /// `below`: who is not of the own queue and not below it ends borrowing.
  const auto until_it_fits = [&](bool only_own, bool borrowing,
                                 std::optional<int> below = {}) -> std::vector<std::size_t> {
    TakenOut out(quotas);
    const auto fits = [&] {
      return quotas.available(wants.queue, pool) >= wants.gpus &&
             (borrowing || !quotas.borrows(wants.queue, pool, wants.gpus));
    };
    for (const KueueWorkload* w : candidates) {
      if (!is_own(w) && (only_own || !quotas.borrows(w->queue, pool))) continue;
      if (!is_own(w) && below && w->priority >= *below) borrowing = false;
      out.take(*w);
      if (fits()) return out.fewest(fits);
    }
    return {};
  };
  if (std::all_of(candidates.begin(), candidates.end(), is_own)) return until_it_fits(true, true);
  const bool under = quotas.in_use(wants.queue, pool) < quotas.nominal(wants.queue, pool);
  if (const auto threshold = borrowing_threshold(wants, borrow_within)) {
    if (!under)
      std::erase_if(candidates, [&](const KueueWorkload* w) {
        return !is_own(w) && w->priority >= *threshold;
      });
    return until_it_fits(false, true, threshold);
  }
  if (under) {
    auto targets = until_it_fits(false, false);
    if (!targets.empty()) return targets;
  }
  return until_it_fits(true, true);
}

/// Candidates of fair sharing, in their order, and which is next.
class FairCandidates {
 public:
  FairCandidates(std::vector<const KueueWorkload*> candidates, std::size_t wants,
                 const KueueQuotas& quotas)
      : left_(std::move(candidates)), wants_(wants), quotas_(quotas) {}

  /// Taken out; nullptr: there is none. From the root down to the place with the highest share, of
  /// equals to that with the first candidate; who has none is passed over unless the workload that
  /// preempts is below it (TargetClusterQueueOrdering of Kueue's preemption/fairsharing).
  const KueueWorkload* next() {
    while (!left_.empty()) {
      std::size_t place = quotas_.root(wants_);
      while (place >= quotas_.queues()) {
        const std::size_t down = highest_below(place);
        if (down == KueueQuotas::kNoPlace) break;
        place = down;
      }
      if (place >= quotas_.queues()) {  // nothing left below it
        if (place == quotas_.root(wants_)) break;
        drop(place);
        continue;
      }
      const auto first = std::find_if(left_.begin(), left_.end(),
                                      [&](const KueueWorkload* w) { return w->queue == place; });
      const KueueWorkload* w = *first;
      left_.erase(first);
      return w;
    }
    return nullptr;
  }

 private:
  bool holds(std::size_t place, std::size_t queue) const {
    for (std::size_t p = queue; p != KueueQuotas::kNoPlace; p = quotas_.above(p))
      if (p == place) return true;
    return false;
  }
  void drop(std::size_t place) {
    std::erase_if(left_, [&](const KueueWorkload* w) { return holds(place, w->queue); });
  }
  std::size_t highest_below(std::size_t cohort) const {
    std::size_t best = KueueQuotas::kNoPlace;
    double best_share = 0;
    for (const KueueWorkload* w : left_) {
      if (!holds(cohort, w->queue)) continue;
      const std::size_t child = quotas_.child_towards(cohort, w->queue);
      const double share = quotas_.share(child);
      if (share <= 0 && !holds(child, wants_)) continue;
      if (best != KueueQuotas::kNoPlace && share <= best_share) continue;
      best = child;
      best_share = share;
    }
    return best;
  }

  std::vector<const KueueWorkload*> left_;
  std::size_t wants_;  // its queue
  const KueueQuotas& quotas_;
};

std::vector<std::size_t> fair(const KueueWorkload& wants, int pool,
                              std::vector<const KueueWorkload*> candidates,
                              std::span<const ShareStrategy> strategies, KueueQuotas& quotas) {
  TakenOut out(quotas);
  const auto fits = [&] { return quotas.available(wants.queue, pool) >= wants.gpus; };
  for (const ShareStrategy strategy : strategies) {
    std::vector<const KueueWorkload*> refused;
    FairCandidates left(std::move(candidates), wants.queue, quotas);
    while (const KueueWorkload* w = left.next()) {
      if (w->queue != wants.queue) {
        if (!quotas.borrows(w->queue, pool)) continue;
        const auto [mine, theirs] = quotas.compared(wants.queue, w->queue);
        const double wanted = quotas.share_with(mine, wants.queue, pool, wants.gpus);
        const bool allowed = strategy == ShareStrategy::final_share
                                 ? wanted <= quotas.share_with(theirs, w->queue, pool, -w->gpus)
                                 : wanted < quotas.share(theirs);
        if (!allowed) {
          refused.push_back(w);
          continue;
        }
      }
      out.take(*w);
      if (fits()) return out.fewest(fits);
    }
    candidates = std::move(refused);
  }
  return {};
}

}  // namespace

std::vector<std::size_t> preemption_targets(const KueueWorkload& wants, int pool,
                                            std::span<const KueueWorkload> admitted,
                                            const KueuePreemptionSpec& rules,
                                            std::span<const ShareStrategy> strategies,
                                            KueueQuotas& quotas) {
  if (rules.within_cluster_queue == WithinPolicy::never &&
      rules.reclaim_within_cohort == ReclaimPolicy::never)
    return {};
  auto candidates = candidates_of(wants, pool, admitted, rules, quotas);
  if (candidates.empty()) return {};
  return strategies.empty()
             ? classic(wants, pool, std::move(candidates), rules.borrow_within_cohort, quotas)
             : fair(wants, pool, std::move(candidates), strategies, quotas);
}

}  // namespace reckon
