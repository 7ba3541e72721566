#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/occupancy.h"

// A queue over time, of one replication: what a picture of it shows.
namespace reckon {

/// Means over equal spans of time.
struct QueueSeries {
  Seconds span{};
  std::vector<double> waiting;   // jobs that are there and do not run
  std::vector<double> there;     // GPUs of the nodes that are there
  std::vector<double> in_use;    // GPUs
  std::vector<double> stranded;  // free GPUs that jobs of the list cannot use, by fragmentation()
  double gpus = 0;               // of all nodes, at most
  SimTime begin{}, end{};        // of the first submit and the last end
};

/// Fragmentation is F of Weng et al. 2023, eq. 3 (see
/// fragmentation.h), of whole GPUs: of a node with f free ones the part of the jobs' pods that ask
/// for more, times f. A job's pods are those that FreeNodes makes of it: whole nodes of the largest
/// size and a rest.
QueueSeries queue_series(const JobList& list, const QueueRun& run, const Occupancy& occupancy,
                         std::size_t spans);

/// Share of the GPUs of a node in use, mean over equal spans of time, by node and span.
std::vector<std::vector<double>> node_use(const Occupancy& occupancy, const QueueSeries& series);
/// Share of the time in which the node is there, likewise.
std::vector<std::vector<double>> node_presence(const Occupancy& occupancy,
                                               const QueueSeries& series);

/// "a100-3": node 3 of its pool; of groups with one name the nodes count on.
std::vector<std::string> node_names(std::span<const NodeGroup> groups,
                                    std::span<const std::string> names);

}  // namespace reckon
