#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "sim/queue/occupancy.h"

// What happened to one job of a queue, of one replication.
namespace reckon {

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
