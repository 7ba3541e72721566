#pragma once
#include <span>

#include "sim/queue/fifo.h"

namespace reckon {

enum class PreemptiveOrder {
  shortest_remaining,  // SRTF [Schrage 1968: the least mean time of all orders on one server]
  least_attained,      // LAS, also foreground-background: GPU time had so far [Tiresias, NSDI '19]
};

/// Of all jobs that are there, those first in `order` run, each where it fits beside those before
/// it; the others are suspended and go on later from where they were, at no cost. GPUs are chosen
/// anew for each that starts or goes on. The order is looked at when a job comes or ends; of
/// least_attained also when a job that waits has had less than one that runs, but not within
/// kLeastQuantum of the last look, so that equal jobs take turns instead of sharing a GPU. A look
/// costs O(n log n) of the n jobs that are there.
QueueRun run_preemptive(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                        PreemptiveOrder order, std::size_t first_measured, std::size_t measured,
                        const RunOptions& options = {});

inline constexpr Seconds kLeastQuantum{60};

}  // namespace reckon
