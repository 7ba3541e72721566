#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/job_times.h"

// A queue over time, of one replication: what a picture of it shows.
namespace reckon {

/// Who held which GPUs of which nodes.
struct Occupancy {
  std::span<const Holding> holdings;  // all of the run
  std::span<const NodeGroup> groups;
  std::span<const NodeStay> stays{};  // where nodes come and go; empty: all are there all the time
  /// Where a job holds GPUs before all its pods have some; empty: it runs while it holds them.
  std::span<const RunSpan> runs{};
};

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

/// From when to when a job held GPUs without a break.
struct HeldSpan {
  SimTime begin{}, end{};
  std::vector<NodePart> parts;
};

/// What happened to one job.
struct JobStory {
  std::size_t job = 0;
  std::vector<HeldSpan> held;           // the last one to its end
  std::size_t waiting_before = 0;       // jobs that waited when it came
  std::size_t overtook = 0;             // that came later and started before it
  int free_at_submit = 0, largest = 0;  // GPUs; of a node
  /// Shares of its wait in which as many GPUs as it asks for were free: on too many nodes, or where
  /// it would have fit but for what others keep (a reservation, a limit or a quota; under Karpenter
  /// CPUs and memory). 0 where it did not wait.
  double too_scattered = 0, kept_for_others = 0;
  /// Of nodes that come and go, where the job waited for the last of its own: from its submit until
  /// that was asked for, and from then until it was there.
  std::optional<SimDuration> until_asked, until_ready;
};
/// The measured job that waited about as long as 95 of 100: of those within a tenth of the 95th
/// percentile one that was suspended or evicted, if there is one, else the nearest. kNoJob: none
/// started.
inline constexpr std::size_t kNoJob = static_cast<std::size_t>(-1);
std::size_t typical_wait(const QueueRun& run);
JobStory story_of(std::size_t job, const JobList& list, const QueueRun& run,
                  const Occupancy& occupancy);

}  // namespace reckon
