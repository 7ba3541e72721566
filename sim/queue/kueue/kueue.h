#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/fifo.h"
#include "sim/queue/job_list.h"
#include "sim/scenario/spec/scheduler.h"

// Kueue: jobs wait in ClusterQueues for quota.
namespace reckon {

/// At each arrival and end the first workload of each ClusterQueue (by priority, then by submit) is
/// given the first flavor with enough quota (flavorFungibility decides whether a flavor that
/// suffices with borrowing or with preemption ends the search); those that do not borrow go first,
/// then the higher priority, then the older; under fair sharing the lowest share value. One that
/// does not fit blocks those behind it under StrictFIFO, and is passed over under BestEffortFIFO
/// (https://kueue.sigs.k8s.io/docs/concepts/cluster_queue, "Queueing strategy", "Flavors and
/// borrowing semantics", "FlavorFungibility"). Evictions are preemption_targets (preemption.h); the
/// evicted stop at once, keep their place by submit, and lose what `checkpoint` says.
/// A job that is admitted holds its quota, and starts when its GPUs are free together on nodes of
/// its flavor; those that wait for nodes are looked at in order of admission. A job that asks for a
/// topology (topology.h) is admitted only with its nodes, and starts at once.
/// Rules such as borrowWithinCohort beside reclaimWithinCohort: Any let two jobs evict each other
/// for ever, in Kueue too: a job that was evicted kMostEvictions times stays. Where its queue has
/// admission checks, a job holds its quota until they are Ready, and only then looks for nodes
/// (admission_checks.h). A job asks for one resource, whole GPUs or devices of one kind, and gets a
/// flavor whose pool has it. Not modelled: resources but GPUs, the time that an eviction takes,
/// evictions for the nodes of a topology where the quota suffices. `pools`: names by cell of
/// `groups`, once for each resource of a pool. A job's queue names its ClusterQueue (the only one,
/// if it has none): unknown_cluster_queues() is empty.
inline constexpr int kMostEvictions = 100;
QueueRun run_kueue(const JobList& list, std::span<const NodeGroup> groups,
                   std::span<const std::string> pools, const KueueSpec& kueue,
                   std::size_t first_measured, std::size_t measured,
                   const RunOptions& options = {});

/// Queues that jobs name and `kueue` does not have; "": a job names none, and there are several.
std::vector<std::string> unknown_cluster_queues(const JobList& list, const KueueSpec& kueue);

/// Why the job never runs, as a clause; nullopt: it does.
std::optional<std::string> kueue_never(const JobList& list, std::size_t job,
                                       std::span<const NodeGroup> groups,
                                       std::span<const std::string> pools, const KueueSpec& kueue,
                                       CellSet cells = kAllCells);

}  // namespace reckon
