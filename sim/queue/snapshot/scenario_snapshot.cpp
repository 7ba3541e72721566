#include "sim/queue/snapshot/scenario_snapshot.h"

#include <fmt/format.h>

namespace reckon {

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
  snapshot.history = jobs_of(*queue, question.seed, 0);
  // Who submits a training asks for whole GPUs.
  std::erase_if(snapshot.history.jobs,
                [](const JobRequest& job) { return job.devices_of_gpu > 1; });
  snapshot.at = snapshot.history.epoch.value_or(0);
  if (scenario.start) snapshot.at = scenario.start->time_since_epoch().count();
  return snapshot;
}

}  // namespace reckon
