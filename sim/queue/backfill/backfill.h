#pragma once
#include <span>

#include "sim/queue/backfill/queue_rules.h"
#include "sim/queue/fifo.h"

namespace reckon {

/// EASY backfill [Lifka 1995; Mu'alem and Feitelson 2001, IEEE TPDS 12(6)] in the order of `rules`:
/// jobs start as they come; the first that must wait has a reservation: the earliest time at which
/// it fits when running jobs end at their limits, and the GPUs it gets then. A later job starts at
/// once if it fits and either ends by that time at its limit or leaves those GPUs free. Where jobs
/// use different nodes, the first that must wait of each set of nodes has one; a job whose nodes
/// are partly reserved already waits without. Every arrival and end is looked at; jobs at the same
/// time are all known before. A job over its limit counts as one that ends now. Which nodes a job
/// gets is said at FreeNodes; a look at the queue costs O(log jobs) for each job that it starts and
/// for each size of jobs that wait (WaitingJobs), the reservation O(log nodes) for each part of a
/// job that ends before it.
QueueRun run_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                      QueueRules& rules, std::size_t first_measured, std::size_t measured,
                      const RunOptions& options = {});

/// In order of submit.
QueueRun run_easy_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                           std::size_t first_measured, std::size_t measured,
                           const RunOptions& options = {});

/// The job with the shortest limit first (its length where it has none).
QueueRun run_shortest_job_first(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                                std::size_t first_measured, std::size_t measured,
                                const RunOptions& options = {});

}  // namespace reckon
