#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/job_request.h"
#include "sim/queue/free_nodes.h"
#include "sim/queue/job_times.h"

// Jobs of fixed time (FixedTime), first come, first served. Of their pods the GPUs count.
namespace reckon {

/// A job starts when all before it have started and its GPUs are free, all at once; nobody
/// overtakes. A job that fits on one node gets one: that with the fewest free GPUs that suffice,
/// the first of equals. A larger one gets whole free nodes of the largest size, and the rest of it
/// one more by the same rule. Jobs are taken in order of `submit`, equal ones in that of the list.
/// Nodes are kept by their free GPUs: a start costs O(log nodes) for each node it takes.
QueueRun run_fifo(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                  std::size_t first_measured, std::size_t measured, const RunOptions& options = {});

}  // namespace reckon
