#include "sim/queue/lists/flavor_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/queue/kueue/quotas.h"

namespace reckon {
namespace {

class FlavorChecks {
 public:
  FlavorChecks(const QueueQuestion& question, TraceSource& source)
      : question_(question), source_(source) {
    for (const std::string& pool : question.pools)
      if (std::ranges::find(pools_, pool) == pools_.end()) pools_.push_back(pool);
  }

  void check_pool(const std::string& name, const std::string& at) {
    if (std::ranges::find(pools_, name) == pools_.end()) tell_no_pool(name, at, pools_, source_);
  }

  /// A flavor with several quotas stands there once for each.
  void check(const std::vector<KueueFlavorSpec>& flavors, const std::string& owner) {
    for (const KueueFlavorSpec& flavor : flavors) {
      const std::string at = fmt::format("{}.flavors.{}", owner, flavor.name);
      if (std::ranges::find(pools_, flavor.name) == pools_.end()) {
        if (&*std::ranges::find(flavors, flavor.name, &KueueFlavorSpec::name) == &flavor)
          tell_no_pool(flavor.name, at, pools_, source_);
        continue;
      }
      const std::vector<std::string> resources = resources_of_pool(flavor.name);
      if (flavor.resource.empty()) {
        if (resources.size() > 1) tell_one_quota(flavor, resources, at);
      } else if (std::ranges::find(resources, flavor.resource) == resources.end()) {
        source_.error(at,
                      fmt::format("pool '{}' has no '{}'{}", flavor.name, flavor.resource,
                                  did_you_mean(flavor.resource, resources)),
                      fmt::format("it has: {}", fmt::join(resources, ", ")));
      }
    }
  }

 private:
  std::vector<std::string> resources_of_pool(const std::string& pool) const {
    std::vector<std::string> resources;
    for (const NodeGroup& group : question_.groups) {
      if (question_.pools[static_cast<std::size_t>(group.cell)] != pool) continue;
      const std::string name = group.resource.empty() ? kWholeGpus : group.resource;
      if (std::ranges::find(resources, name) == resources.end()) resources.push_back(name);
    }
    return resources;
  }

  void tell_one_quota(const KueueFlavorSpec& flavor, const std::vector<std::string>& resources,
                      const std::string& at) {
    std::vector<std::string> quotas;
    for (const std::string& resource : resources)
      quotas.push_back(
          fmt::format("{{name: {}, nominalQuota: {}}}", resource, flavor.nominal_quota));
    source_.error(at,
                  fmt::format("pool '{}' has {} resources, and the flavor a quota for one",
                              flavor.name, resources.size()),
                  fmt::format("resources: [{}]", fmt::join(quotas, ", ")));
  }

  const QueueQuestion& question_;
  TraceSource& source_;
  std::vector<std::string> pools_;
};

}  // namespace

bool check_flavors(const KueueSpec& kueue, const QueueQuestion& question, TraceSource& source) {
  const std::string at = "cluster.scheduler.kueue.";
  const std::size_t before = source.problems.size();
  FlavorChecks checks(question, source);
  for (const KueueResourceFlavorSpec& flavor : kueue.resource_flavors)
    checks.check_pool(flavor.name, at + "resourceFlavors." + flavor.name);
  for (const KueueCohortSpec& cohort : kueue.cohorts)
    checks.check(cohort.flavors, at + "cohorts." + cohort.name);
  for (const ClusterQueueSpec& queue : kueue.cluster_queues)
    checks.check(queue.flavors, at + "clusterQueues." + queue.name);
  return source.problems.size() == before;
}

void tell_no_pool(const std::string& name, const std::string& path,
                  const std::vector<std::string>& pools, TraceSource& source) {
  source.error(path, fmt::format("'{}' is no pool with GPUs{}", name, did_you_mean(name, pools)),
               fmt::format("pools: {}", fmt::join(pools, ", ")));
}

}  // namespace reckon
