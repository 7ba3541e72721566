#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/yaml/kueue/checks.h"

// What Kueue refuses of a `cluster.scheduler.kueue:` whose keys are right one by one.
namespace reckon {
namespace {

void check_cohorts(Reader& reader, const YamlNode& node, const KueueSpec& kueue) {
  const auto* at = node.find("cohorts");
  if (at == nullptr) return;
  const auto parent_of = [&](const std::string& name) {
    for (const KueueCohortSpec& cohort : kueue.cohorts)
      if (cohort.name == name) return cohort.parent;
    return std::string();
  };
  for (const KueueCohortSpec& cohort : kueue.cohorts) {
    std::string above = cohort.parent;
    std::size_t steps = 0;  // a chain longer than there are cohorts runs in a circle
    while (!above.empty() && ++steps <= kueue.cohorts.size()) above = parent_of(above);
    if (!above.empty())
      reader.error(at->key_at, fmt::format("cohort '{}' is its own parent", cohort.name),
                   "parentName: the name of another cohort");
    for (const KueueFlavorSpec& flavor : cohort.flavors)
      if (cohort.parent.empty() && (flavor.borrowing_limit || flavor.lending_limit))
        reader.error(at->key_at,
                     fmt::format("flavor '{}' of cohort '{}' has a limit of borrowing or lending, "
                                 "and the cohort has no parent",
                                 flavor.name, cohort.name),
                     "example: parentName: all");
  }
}

void check_topologies(Reader& reader, const YamlNode& node, const KueueSpec& kueue) {
  const auto* at = node.find("resourceFlavors");
  if (at == nullptr) return;
  std::vector<std::string> names;
  for (const KueueTopologySpec& topology : kueue.topologies) names.push_back(topology.name);
  for (const KueueResourceFlavorSpec& flavor : kueue.resource_flavors)
    if (std::ranges::find(names, flavor.topology) == names.end())
      reader.error(at->key_at,
                   fmt::format("flavor '{}' names the topology '{}', which is not there{}",
                               flavor.name, flavor.topology, did_you_mean(flavor.topology, names)),
                   "add it to topologies");
}

}  // namespace

void check_kueue(Reader& reader, const YamlNode& node, const KueueSpec& kueue) {
  check_admission_checks(reader, node, kueue);
  check_cohorts(reader, node, kueue);
  check_topologies(reader, node, kueue);
  const auto* queues = node.find("clusterQueues");
  if (queues == nullptr) return;
  for (const ClusterQueueSpec& queue : kueue.cluster_queues) {
    if (queue.preemption.borrow_within_cohort.policy == BorrowWithinPolicy::never) continue;
    if (queue.preemption.reclaim_within_cohort == ReclaimPolicy::never)
      reader.error(
          queues->key_at,
          fmt::format("'{}' has borrowWithinCohort, and reclaimWithinCohort is Never", queue.name),
          "reclaimWithinCohort: LowerPriority, or Any");
    if (!kueue.fair_sharing.empty())
      reader.error(
          queues->key_at,
          fmt::format("'{}' has borrowWithinCohort, which is of classic preemption", queue.name),
          "leave fairSharing out, or borrowWithinCohort");
  }
  for (const ClusterQueueSpec& queue : kueue.cluster_queues)
    for (const KueueFlavorSpec& flavor : queue.flavors)
      if (queue.cohort.empty() && (flavor.borrowing_limit || flavor.lending_limit))
        reader.error(queues->key_at,
                     fmt::format("flavor '{}' of '{}' has a limit of borrowing or lending, and the "
                                 "queue is in no cohort",
                                 flavor.name, queue.name),
                     "example: cohortName: all");
}

}  // namespace reckon
