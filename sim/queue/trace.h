#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/queue/backfill/overflow.h"
#include "sim/queue/gavel/gavel.h"
#include "sim/queue/karpenter/karpenter_answer.h"
#include "sim/queue/karpenter/node_rows.h"
#include "sim/queue/packing/load.h"
#include "sim/queue/queue_files.h"
#include "sim/queue/queue_history.h"
#include "sim/queue/queue_question.h"
#include "sim/scenario/scenario.h"

// A scenario whose work is `trace:`, `arrivals:` or `jobs:` that a scheduler starts: its files
// read, and simulated.
namespace reckon {

struct LoadQuestion {  // with trace.load
  std::vector<GpuNode> nodes;
  std::vector<PodRequest> pods;
  double load = 1;  // GPUs asked for over the cluster's
};
struct GavelQuestion {  // of Gavel's policies
  std::vector<GavelKind> kinds;
  GavelRules rules;
  GavelList list;
};
struct TraceQuestion {
  std::string scenario;
  SchedulingPolicy policy = SchedulingPolicy::fifo;
  std::optional<int> window;
  std::variant<LoadQuestion, GavelQuestion, QueueQuestion> work;
  std::uint64_t seed = 1;
  double usd_rate = 1;  // of the scenario's prices, as in TraceResult
  std::string currency = "USD";
  std::vector<std::string> warnings;
};

/// Reads the files that `trace`, `arrivals` or `jobs` name: in trace.directory (there also without
/// the directories of the name), beside the file in which the name stands, in the working directory
/// where it came with
/// --set. Errors: what is wrong in them, with their lines; a window beyond the list.
Expected<TraceQuestion> load_trace(const ScenarioFile& file, const QueueSources& sources = {});

/// One replication's answer; a mean over several where `replications` is above 1: curves point by
/// point, statistics one by one.
struct TraceResult {
  std::string scenario;
  SchedulingPolicy policy = SchedulingPolicy::fifo;
  std::uint64_t seed = 1;
  int replications = 1;
  std::int64_t jobs = 0;                              // that came, of the first replication
  std::int64_t started = 0;                           // or were placed
  std::int64_t never = 0;                             // that no empty cluster could run
  std::int64_t measured = 0;                          // jobs of the window that ended
  double gpus = 0;                                    // of the cluster, a count
  std::optional<LoadCurve> curve;                     // with a load
  std::optional<TimeStatistics> waiting, completion;  // without
  std::optional<double> makespan_seconds, utilization;
  std::optional<TimeStatistics> slowdown;  // of jobs with a length; see answers_of
  std::vector<TeamAnswer> teams;           // likewise
  /// QueueAnswers' index and share; preemptions: a count.
  std::optional<double> fairness, preemptions, goodput;
  /// 0..1. With a load at its end; else GPUs that jobs held, and of those that were free the part
  /// that jobs of the list could not use, means over the makespan (fragmentation: of the first
  /// replication).
  std::optional<double> allocation, fragmentation;
  std::optional<double> cost_usd, energy_joules;  // of all nodes over the makespan
  /// Of jobs that ran on an overflow's nodes; the cost is part of cost_usd.
  std::optional<double> overflow_jobs, overflow_reclaims, overflow_node_hours, overflow_usd;
  std::optional<KarpenterAnswer> karpenter;  // of what it made
  double usd_rate = 1;                       // what 1 USD costs in `currency`
  std::string currency = "USD";
  std::vector<std::string> warnings;
};

/// Replication k draws with seed + k. Any number of threads gives the same. Errors: TooMuchWork.
TraceResult simulate_trace(const TraceQuestion& question, int replications, int threads);

/// The first replication of a queue of jobs with a length, job by job.
struct QueueRecord {
  JobList list;
  QueueRun run;
  std::vector<Holding> holdings;  // who held which GPUs when
  QueueCharges charges;           // of the overflow's nodes too
  std::optional<OverflowUse> overflow;
  std::optional<KarpenterAnswer> karpenter;
  // Of Karpenter's nodes:
  int most_gpus = 0;              // at a time
  std::optional<NodeRows> nodes;  // for pictures
  std::vector<RunSpan> spans;
};
/// What pictures of the record show; it points into both.
Occupancy occupancy_of(const QueueQuestion& question, const QueueRecord& record);
/// Of the occupancy's nodes.
std::vector<std::string> node_names(const QueueQuestion& question, const QueueRecord& record);
/// nullopt: the question is of no such jobs.
std::optional<QueueRecord> record_queue(const TraceQuestion& question);

/// Of a metric of traces (is_of_trace); nullopt: the trace's kind does not tell it.
/// In Expectation::value's unit.
std::optional<double> value_of(const Expectation& expectation, const TraceResult& result);

}  // namespace reckon
