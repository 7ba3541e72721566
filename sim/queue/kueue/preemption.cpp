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
  if (other.pool != pool) return false;
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

std::vector<std::size_t> classic(const KueueWorkload& wants, int pool,
                                 const std::vector<const KueueWorkload*>& candidates,
                                 KueueQuotas& quotas) {
  const auto is_own = [&](const KueueWorkload* w) { return w->queue == wants.queue; };
  const auto until_it_fits = [&](bool only_own, bool borrowing) -> std::vector<std::size_t> {
    TakenOut out(quotas);
    const auto fits = [&] {
      return quotas.available(wants.queue, pool) >= wants.gpus &&
             (borrowing || !quotas.borrows(wants.queue, pool, wants.gpus));
    };
    for (const KueueWorkload* w : candidates) {
      if (!is_own(w) && (only_own || !quotas.borrows(w->queue, pool))) continue;
      out.take(*w);
      if (fits()) return out.fewest(fits);
    }
    return {};
  };
  if (std::all_of(candidates.begin(), candidates.end(), is_own)) return until_it_fits(true, true);
  if (quotas.in_use(wants.queue, pool) < quotas.nominal(wants.queue, pool)) {
    auto targets = until_it_fits(false, false);
    if (!targets.empty()) return targets;
  }
  return until_it_fits(true, true);
}

std::vector<std::size_t> fair(const KueueWorkload& wants, int pool,
                              std::vector<const KueueWorkload*> candidates,
                              std::span<const ShareStrategy> strategies, KueueQuotas& quotas) {
  TakenOut out(quotas);
  const auto fits = [&] { return quotas.available(wants.queue, pool) >= wants.gpus; };
  for (const ShareStrategy strategy : strategies) {
    std::vector<const KueueWorkload*> refused;
    while (!candidates.empty()) {
      // The first, by the order of candidates, of the queue with the highest share.
      const auto next = std::max_element(candidates.begin(), candidates.end(),
                                         [&](const KueueWorkload* a, const KueueWorkload* b) {
                                           return quotas.share(a->queue) < quotas.share(b->queue);
                                         });
      const KueueWorkload* w = *next;
      candidates.erase(next);
      if (w->queue != wants.queue) {
        if (!quotas.borrows(w->queue, pool)) continue;
        const double wanted = quotas.share(wants.queue, pool, wants.gpus);
        const bool allowed = strategy == ShareStrategy::final_share
                                 ? wanted <= quotas.share(w->queue, pool, -w->gpus)
                                 : wanted < quotas.share(w->queue);
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
  auto candidates = candidates_of(wants, pool, admitted, rules, quotas);
  if (candidates.empty()) return {};
  return strategies.empty() ? classic(wants, pool, candidates, quotas)
                            : fair(wants, pool, std::move(candidates), strategies, quotas);
}

}  // namespace reckon
