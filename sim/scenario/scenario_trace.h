#pragma once
#include <optional>
#include <string>

#include "sim/base/quantity.h"
#include "sim/base/words.h"

// Recorded jobs of many users that share a cluster, and who schedules them.
namespace reckon {

/// Whose layout a file of jobs has (sim/queue reads them).
enum class TraceFormat { openb, gavel, philly, sia, csv, slurm };
constexpr auto words_of(TraceFormat) {
  return std::array{Word<TraceFormat>{"openb", TraceFormat::openb},
                    Word<TraceFormat>{"gavel", TraceFormat::gavel},
                    Word<TraceFormat>{"philly", TraceFormat::philly},
                    Word<TraceFormat>{"sia", TraceFormat::sia},
                    Word<TraceFormat>{"csv", TraceFormat::csv},
                    Word<TraceFormat>{"slurm", TraceFormat::slurm}};
}

/// `trace:` as written.
struct TraceSpec {
  std::string file;
  TraceFormat format = TraceFormat::csv;
  std::string nodes;        // the list of nodes in place of cluster.pools; "": the pools
  std::string throughputs;  // format gavel: the table of steps per second
  std::string directory;    // where the three files above are looked for first; "": not given
  /// Requested GPUs over the cluster's that arrive one after the other and stay (1.3 = 130 %); not
  /// given: jobs arrive and leave as recorded.
  std::optional<double> load;
  int running = 0;            // jobs at the head of the file that ran already
  std::optional<int> window;  // jobs behind them that are measured; not given: all
};

/// How a cluster chooses among the jobs that wait, or among nodes for the one job.
enum class SchedulingPolicy {
  fifo,           // in order of arrival, nobody overtakes
  easy_backfill,  // later ones start where they do not delay the first
  fifo_perf,      // Gavel's performance-aware FIFO, in rounds
  fgd,
  best_fit,
  dot_product,
  gpu_packing,
  gpu_clustering,
  random,
};
constexpr auto words_of(SchedulingPolicy) {
  return std::array{Word<SchedulingPolicy>{"fifo", SchedulingPolicy::fifo},
                    Word<SchedulingPolicy>{"easy_backfill", SchedulingPolicy::easy_backfill},
                    Word<SchedulingPolicy>{"fifo_perf", SchedulingPolicy::fifo_perf},
                    Word<SchedulingPolicy>{"fgd", SchedulingPolicy::fgd},
                    Word<SchedulingPolicy>{"best_fit", SchedulingPolicy::best_fit},
                    Word<SchedulingPolicy>{"dot_product", SchedulingPolicy::dot_product},
                    Word<SchedulingPolicy>{"gpu_packing", SchedulingPolicy::gpu_packing},
                    Word<SchedulingPolicy>{"gpu_clustering", SchedulingPolicy::gpu_clustering},
                    Word<SchedulingPolicy>{"random", SchedulingPolicy::random}};
}

/// `cluster.scheduler:` as written, in the words of the real system.
struct SchedulerSpec {
  SchedulingPolicy policy = SchedulingPolicy::fifo;
  // Of Gavel's scheduler, by its own names:
  std::optional<Seconds> time_per_iteration;                      // a round
  std::optional<Seconds> minimum_time_between_allocation_resets;  // of decisions
};

}  // namespace reckon
