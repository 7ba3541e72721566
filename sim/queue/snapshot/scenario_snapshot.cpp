#include "sim/queue/snapshot/scenario_snapshot.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

/// Flavors whose pools have no whole GPUs are of no use to who asks for them.
void keep_flavors(KueueSpec& kueue, const std::vector<SnapshotNode>& nodes) {
  const auto gone = [&](const auto& flavor) {
    return std::ranges::find(nodes, flavor.name, &SnapshotNode::pool) == nodes.end();
  };
  for (ClusterQueueSpec& queue : kueue.cluster_queues) std::erase_if(queue.flavors, gone);
  for (KueueCohortSpec& cohort : kueue.cohorts) std::erase_if(cohort.flavors, gone);
  std::erase_if(kueue.resource_flavors, gone);
}

}  // namespace

std::optional<ClusterSnapshot> snapshot_of(const Scenario& scenario,
                                           const TraceQuestion& question) {
  const auto* queue = std::get_if<QueueQuestion>(&question.work);
  if (queue == nullptr || queue->karpenter) return std::nullopt;
  ClusterSnapshot snapshot;
  snapshot.system = SnapshotSystem::scenario;
  snapshot.scheduler = queue->scheduler;
  for (const PoolSpec& pool : scenario.cluster.pools)
    for (int k = 0; pool.accelerator && !pool.accelerator->is_cut() && k < pool.nodes.initial; ++k)
      snapshot.nodes.push_back({.name = fmt::format("{}-{}", pool.name, k),
                                .gpus = pool.accelerator->count,
                                .accelerator = pool.accelerator->type,
                                .pool = pool.name});
  if (snapshot.scheduler.kueue) keep_flavors(*snapshot.scheduler.kueue, snapshot.nodes);
  snapshot.history = jobs_of(*queue, question.seed, 0);
  // Who submits a training asks for whole GPUs.
  std::erase_if(snapshot.history.jobs,
                [](const JobRequest& job) { return job.devices_of_gpu > 1; });
  snapshot.at = snapshot.history.epoch.value_or(0);
  if (scenario.start) snapshot.at = scenario.start->time_since_epoch().count();
  return snapshot;
}

}  // namespace reckon
