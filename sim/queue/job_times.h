#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/queue/free_nodes.h"
#include "sim/queue/job_list.h"

// When a job of a trace came, started and ended.
namespace reckon {

class OverflowNodes;

struct JobTimes {
  SimTime submit{};
  std::optional<SimTime> start, end;  // nullopt: not within what was simulated
  std::int32_t preemptions = 0;       // times that it was suspended or evicted
  bool overflowed = false;            // it ran on nodes of the cloud
};

struct TimeStatistics {
  std::int64_t count = 0;
  double mean = 0, p50 = 0, p95 = 0;  // seconds, or a ratio; quantiles by linear interpolation
};
TimeStatistics statistics_of(std::vector<double> values);  // in the values' unit

/// What the jobs of a trace say together.
struct QueueRun {
  std::vector<JobTimes> jobs;                    // in order of the list
  std::vector<std::size_t> never;                // jobs that no empty cluster could run
  std::size_t first_measured = 0, measured = 0;  // jobs that count below
  TimeStatistics waiting, completion;            // start - submit; end - submit
  double makespan_seconds = 0;                   // first submit to last end, of all jobs
  double gpu_seconds = 0;                        // that jobs held, of all jobs
  std::int64_t preemptions = 0;                  // of the measured jobs
  std::int64_t cancelled = 0;                    // jobs that started and were cancelled, of all
  std::int64_t rejected = 0;                     // jobs that an admission check kept out, of all
  double utilization = 0;                        // gpu_seconds over GPUs times makespan
};

/// GPUs of a node that a job held.
struct Holding {
  std::size_t job = 0;
  NodePart part;
  SimTime begin{}, end{};
};
/// From when to when a node is there.
struct NodeStay {
  int node = 0;
  SimTime begin{}, end{};
};
/// From when to when a job ran without a break.
struct RunSpan {
  std::size_t job = 0;
  SimTime begin{}, end{};
};
/// A job that runs when the clock starts, since before: its time and limit are what is left of
/// them.
struct RunningJob {
  std::size_t job = 0;
  std::vector<NodePart>
      on;  // free otherwise; empty: the scheduler's rule chooses, if there is room
};
/// Of a run, besides its jobs.
struct RunOptions {
  std::span<const RunningJob> running;       // of policies that suspend jobs: none
  std::vector<Holding>* holdings = nullptr;  // to be filled in, in order of their ends
  std::optional<std::size_t> until;          // stop when this job starts, under Kueue when it ends
  OverflowNodes* overflow = nullptr;         // of policies with backfill
  std::span<const CellSet> cells{};          // by job, where it may stand; empty: everywhere
  std::uint64_t seed = 1;                    // of what a scheduler draws
  std::uint32_t replication = 0;
  const JobPaces* paces = nullptr;  // null: jobs take as long on all nodes

  CellSet cells_of(std::size_t job) const { return cells.empty() ? kAllCells : cells[job]; }
  /// How long the job's nodes take for work of it; the work that they do in a time.
  SimDuration time(std::size_t job, std::span<const NodePart> on, SimDuration work) const {
    return paces == nullptr ? work : paces->time(job, on, work);
  }
  SimDuration work(std::size_t job, std::span<const NodePart> on, SimDuration time) const {
    return paces == nullptr ? time : paces->work(job, on, time);
  }

  void note(std::size_t job, std::span<const NodePart> parts, SimTime begin, SimTime end) const {
    if (holdings == nullptr || begin == end) return;
    for (const NodePart& part : parts) holdings->push_back({job, part, begin, end});
  }
};

/// Of the work that a job has done when it is stopped, what it need not do again: whole multiples
/// of its checkpoint interval; 0: all of it; nullopt: nothing.
SimDuration kept_work(SimDuration done, std::optional<Seconds> checkpoint);

/// Nothing has started.
QueueRun queue_of_jobs(std::span<const JobRequest> jobs, std::size_t first_measured,
                       std::size_t measured);
int gpus_of(std::span<const NodeGroup> groups);
/// The same where devices are parts of a GPU.
double whole_gpus_of(std::span<const NodeGroup> groups);
/// Fills what follows from `jobs`, `first_measured`, `measured` and `gpu_seconds`.
void summarize(QueueRun& run, double gpus);

/// Runs shorter than this count as so long: the bounded slowdown of Feitelson et al. 1997, "Theory
/// and practice in parallel job scheduling" (JSSPP '97), with the bound of ten seconds that later
/// studies took.
inline constexpr Seconds kShortestOfSlowdown{10};

/// What the measured jobs of a team say together.
struct TeamAnswer {
  std::string name;
  std::int64_t jobs = 0;   // that ended
  double gpu_seconds = 0;  // their GPUs times their lengths
  TimeStatistics waiting, completion, slowdown;
  std::optional<double> usd, joules;  // of what its jobs held; nullopt: unknown
};
struct QueueAnswers {
  TimeStatistics slowdown;        // time from submit to end over the length, at least 1
  std::vector<TeamAnswer> teams;  // in the order of their names in the list; empty: none are said
  /// Jain's index of the teams' mean slowdowns [Jain, Chiu, Hawe 1984, DEC-TR-301]: (sum x)^2 /
  /// (n sum x^2). 1: all are slowed down alike; 1/n: one alone. nullopt: fewer than two teams.
  std::optional<double> fairness;
  /// GPU time of the jobs that ended, as long as they are, over what all jobs held: the rest was
  /// done again after evictions. nullopt: nothing was held.
  std::optional<double> goodput;
};
/// Of jobs with FixedTime.
QueueAnswers answers_of(const QueueRun& run, const JobList& list);

}  // namespace reckon
