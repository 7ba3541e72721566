#include "sim/queue/kueue/quotas.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "sim/base/check.h"

// Quotas of a tree of cohorts are added up and used as in Kueue's own cache
// (kubernetes-sigs/kueue, pkg/cache, resource_node.go).
namespace reckon {

bool is_resource(const std::string& said, const std::string& of_pool) {
  return said.empty() || said == of_pool || (of_pool.empty() && said == kWholeGpus);
}

int KueueQuotas::cohort_named(const std::string& name, const KueueSpec& kueue, std::size_t pools) {
  for (const auto& [known, place] : cohorts_)
    if (known == name) return place;
  const int place = static_cast<int>(places_.size());
  cohorts_.emplace_back(name, place);
  places_.push_back({});
  places_.back().quotas.resize(pools);
  const auto listed = std::ranges::find(kueue.cohorts, name, &KueueCohortSpec::name);
  if (listed != kueue.cohorts.end() && !listed->parent.empty()) {
    const int parent = cohort_named(listed->parent, kueue, pools);
    places_[static_cast<std::size_t>(place)].parent = parent;
  }
  return place;
}

KueueQuotas::KueueQuotas(const KueueSpec& kueue, std::span<const std::string> pools,
                         std::span<const std::string> resources) {
  RECKON_CHECK(resources.empty() || resources.size() == pools.size());
  const auto take = [&](std::size_t place, const KueueFlavorSpec& flavor) {
    std::size_t pool = 0;
    while (pool < pools.size() &&
           (pools[pool] != flavor.name ||
            !(resources.empty() || is_resource(flavor.resource, resources[pool]))))
      ++pool;
    RECKON_CHECK(pool < pools.size());
    Quota& quota = places_[place].quotas[pool];
    quota.nominal = flavor.nominal_quota;
    quota.borrowing = flavor.borrowing_limit.value_or(kNoLimit);
    quota.kept = flavor.lending_limit.value_or(kNoLimit);  // a limit until all is added up
    return static_cast<int>(pool);
  };
  std::map<std::string_view, std::vector<std::size_t>> pools_of;
  for (std::size_t k = 0; k < pools.size(); ++k)
    pools_of[resources.empty() ? std::string_view() : resources[k]].push_back(k);
  for (auto& [resource, numbers] : pools_of) pools_of_resource_.push_back(std::move(numbers));
  const std::size_t queues = kueue.cluster_queues.size();
  places_.resize(queues);
  for (Place& place : places_) {
    place.quotas.resize(pools.size());
    for (Quota& quota : place.quotas) quota.kept = kNoLimit;
  }
  for (std::size_t q = 0; q < queues; ++q) {
    const ClusterQueueSpec& spec = kueue.cluster_queues[q];
    places_[q].weight = spec.fair_sharing.weight;
    for (const KueueFlavorSpec& flavor : spec.flavors) places_[q].pools.push_back(take(q, flavor));
    if (spec.cohort.empty()) continue;
    const int cohort = cohort_named(spec.cohort, kueue, pools.size());
    places_[q].parent = cohort;
  }
  for (std::size_t c = queues; c < places_.size(); ++c)
    for (Quota& quota : places_[c].quotas) quota.kept = kNoLimit;
  for (const KueueCohortSpec& cohort : kueue.cohorts)
    for (const auto& [name, place] : cohorts_) {
      if (name != cohort.name) continue;
      places_[static_cast<std::size_t>(place)].weight = cohort.fair_sharing.weight;
      for (const KueueFlavorSpec& flavor : cohort.flavors)
        take(static_cast<std::size_t>(place), flavor);
    }
  // From the queues up: a place is done when all below it are.
  std::vector<int> below(places_.size(), 0);
  for (std::size_t p = 0; p < places_.size(); ++p) {
    if (places_[p].parent < 0) continue;
    const auto parent = static_cast<std::size_t>(places_[p].parent);
    ++below[parent];
    places_[parent].below.push_back(p);
  }
  std::vector<std::size_t> ready;
  for (std::size_t p = 0; p < places_.size(); ++p)
    if (below[p] == 0) ready.push_back(p);
  while (!ready.empty()) {
    Place& place = places_[ready.back()];
    ready.pop_back();
    for (std::size_t k = 0; k < pools.size(); ++k) {
      Quota& quota = place.quotas[k];
      quota.subtree += quota.nominal;
      quota.kept = quota.kept == kNoLimit ? 0 : std::max(0, quota.subtree - quota.kept);
      if (place.parent < 0) continue;
      Quota& above = places_[static_cast<std::size_t>(place.parent)].quotas[k];
      above.subtree += quota.subtree - quota.kept;
    }
    if (place.parent >= 0 && --below[static_cast<std::size_t>(place.parent)] == 0)
      ready.push_back(static_cast<std::size_t>(place.parent));
  }
  for (std::size_t q = 0; q < queues; ++q) {
    int root = static_cast<int>(q);
    while (places_[static_cast<std::size_t>(root)].parent >= 0)
      root = places_[static_cast<std::size_t>(root)].parent;
    root_.push_back(root);
  }
}

bool KueueQuotas::defines(std::size_t queue, int pool) const {
  const auto& pools = places_[queue].pools;
  return std::find(pools.begin(), pools.end(), pool) != pools.end();
}

int KueueQuotas::available_of(std::size_t place, int pool, bool beside_use) const {
  const Quota& own = quota(place, pool);
  const int used = beside_use ? own.used : 0, parent = places_[place].parent;
  if (parent < 0) return own.subtree - used;
  int above = available_of(static_cast<std::size_t>(parent), pool, beside_use);
  if (own.borrowing != kNoLimit)
    above = std::min(above, own.subtree - own.kept - std::max(0, used - own.kept) + own.borrowing);
  return std::max(0, own.kept - used) + above;
}

void KueueQuotas::use(std::size_t queue, int pool, int gpus) {
  // What a place keeps to itself is used first, and given back last.
  for (int place = static_cast<int>(queue); place >= 0 && gpus != 0;
       place = places_[static_cast<std::size_t>(place)].parent) {
    Quota& quota = places_[static_cast<std::size_t>(place)].quotas[static_cast<std::size_t>(pool)];
    const int before = std::max(0, quota.used - quota.kept);
    quota.used += gpus;
    RECKON_CHECK(quota.used >= 0);
    gpus = std::max(0, quota.used - quota.kept) - before;
  }
}

std::size_t KueueQuotas::child_towards(std::size_t cohort, std::size_t queue) const {
  std::size_t place = queue;
  while (above(place) != cohort) {
    place = above(place);
    RECKON_CHECK(place != kNoPlace);
  }
  return place;
}

std::pair<std::size_t, std::size_t> KueueQuotas::compared(std::size_t a, std::size_t b) const {
  std::size_t cohort = above(a);
  const auto holds = [&](std::size_t place) {
    for (std::size_t p = b; p != kNoPlace; p = above(p))
      if (p == place) return true;
    return false;
  };
  while (!holds(cohort)) {
    cohort = above(cohort);
    RECKON_CHECK(cohort != kNoPlace);
  }
  return {child_towards(cohort, a), child_towards(cohort, b)};
}

double KueueQuotas::share(std::size_t place) const {
  const std::size_t cohort = above(place);
  if (cohort == kNoPlace) return 0;
  double most = 0;
  for (const std::vector<std::size_t>& pools : pools_of_resource_) {
    double borrowed = 0, lent = 0;
    for (const std::size_t k : pools) {
      const Quota& quota = places_[place].quotas[k];
      borrowed += std::max(0, quota.used - quota.subtree);
    }
    if (borrowed == 0) continue;
    for (const std::size_t k : pools) lent += available_of(cohort, static_cast<int>(k), false);
    if (lent > 0) most = std::max(most, borrowed / lent);
  }
  return most / places_[place].weight;
}

double KueueQuotas::share_with(std::size_t place, std::size_t queue, int pool, int more) {
  use(queue, pool, more);
  const double out = share(place);
  use(queue, pool, -more);
  return out;
}

}  // namespace reckon
