#pragma once
#include <span>

#include "sim/queue/fifo.h"

namespace reckon {

/// EASY backfill [Lifka 1995; Mu'alem and Feitelson 2001, IEEE TPDS 12(6)]: jobs start in order of
/// `submit`; the first that must wait has a reservation: the earliest time at which it fits when
/// running jobs end at their limits, and the GPUs it gets then. A later job starts at once if it
/// fits and either ends by that time at its limit or leaves those GPUs free. Every arrival and end
/// is looked at; jobs at the same time are all known before. A job over its limit counts as one
/// that ends now. Which nodes a job gets is said at run_fifo; a look at the queue costs O(jobs that
/// wait), the reservation O(log nodes) for each part of a job that ends before it.
QueueRun run_easy_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                           std::size_t first_measured, std::size_t measured);

}  // namespace reckon
