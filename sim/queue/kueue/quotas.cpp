#include "sim/queue/kueue/quotas.h"

#include <algorithm>
#include <map>

#include "sim/base/check.h"

namespace reckon {

KueueQuotas::KueueQuotas(std::span<const ClusterQueueSpec> queues,
                         std::span<const std::string> pools) {
  std::map<std::string, int> cohorts;
  for (const ClusterQueueSpec& spec : queues) {
    Queue queue;
    if (!spec.cohort.empty())
      queue.cohort = cohorts.try_emplace(spec.cohort, int(cohorts.size())).first->second;
    queue.weight = spec.fair_sharing.weight;
    for (const KueueFlavorSpec& flavor : spec.flavors) {
      const auto pool = std::find(pools.begin(), pools.end(), flavor.name);
      RECKON_CHECK(pool != pools.end());
      queue.pools.push_back(static_cast<int>(pool - pools.begin()));
      Quota quota{.nominal = flavor.nominal_quota};
      if (queue.cohort < 0)
        quota.kept = quota.nominal;
      else if (flavor.lending_limit)
        quota.kept = std::max(0, quota.nominal - *flavor.lending_limit);
      quota.borrowing = flavor.borrowing_limit.value_or(quota.borrowing);
      queue.quotas.push_back(quota);
    }
    queues_.push_back(std::move(queue));
  }
  lent_.assign(cohorts.size(), std::vector<int>(pools.size(), 0));
  taken_ = lent_;
  for (const Queue& queue : queues_)
    for (std::size_t f = 0; f < queue.pools.size() && queue.cohort >= 0; ++f)
      lent_[std::size_t(queue.cohort)][std::size_t(queue.pools[f])] +=
          queue.quotas[f].nominal - queue.quotas[f].kept;
}

int KueueQuotas::index(std::size_t queue, int pool) const {
  const auto& pools = queues_[queue].pools;
  const auto found = std::find(pools.begin(), pools.end(), pool);
  return found == pools.end() ? -1 : static_cast<int>(found - pools.begin());
}

int KueueQuotas::available_of(const Queue& queue, const Quota& quota, int used, int lent,
                              int taken) const {
  const int own = std::max(0, quota.kept - used);
  if (queue.cohort < 0) return own;
  int from_cohort = lent - taken;
  if (quota.borrowing != std::numeric_limits<int>::max())
    from_cohort = std::min(
        from_cohort, quota.nominal - quota.kept - std::max(0, used - quota.kept) + quota.borrowing);
  return own + from_cohort;
}

int KueueQuotas::available(std::size_t queue, int pool) const {
  const Queue& q = queues_[queue];
  const Quota& quota = of(queue, pool);
  if (q.cohort < 0) return available_of(q, quota, quota.used, 0, 0);
  return available_of(q, quota, quota.used, lent_[std::size_t(q.cohort)][std::size_t(pool)],
                      taken_[std::size_t(q.cohort)][std::size_t(pool)]);
}

int KueueQuotas::most(std::size_t queue, int pool) const {
  const Queue& q = queues_[queue];
  const int lent = q.cohort < 0 ? 0 : lent_[std::size_t(q.cohort)][std::size_t(pool)];
  return available_of(q, of(queue, pool), 0, lent, 0);
}

void KueueQuotas::use(std::size_t queue, int pool, int gpus) {
  Queue& q = queues_[queue];
  Quota& quota = q.quotas[static_cast<std::size_t>(index(queue, pool))];
  const int before = std::max(0, quota.used - quota.kept);
  quota.used += gpus;
  RECKON_CHECK(quota.used >= 0);
  if (q.cohort >= 0)
    taken_[std::size_t(q.cohort)][std::size_t(pool)] +=
        std::max(0, quota.used - quota.kept) - before;
}

double KueueQuotas::share(std::size_t queue, int pool, int more) const {
  const Queue& q = queues_[queue];
  if (q.cohort < 0) return 0;
  double borrowed = 0, lent = 0;
  for (std::size_t f = 0; f < q.pools.size(); ++f) {
    const int used = q.quotas[f].used + (q.pools[f] == pool ? more : 0);
    borrowed += std::max(0, used - q.quotas[f].nominal);
  }
  for (const int gpus : lent_[std::size_t(q.cohort)]) lent += gpus;
  return lent > 0 ? borrowed / lent / q.weight : 0;
}

}  // namespace reckon
