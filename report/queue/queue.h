#pragma once
#include <string>

#include "report/sweep/rows.h"
#include "sim/forecast/forecast.h"
#include "sim/queue/trace.h"

// What `reckon simulate` and `reckon check` say of jobs that share a cluster.
namespace reckon {

/// Waiting and completion, or allocation and fragmentation over load, then what they rest on.
std::string queue_table(const TraceResult& result, int width = 100);
/// One object; lists over load are of 1 %, 2 %, ... of it.
std::string queue_json(const TraceResult& result);
/// RFC 4180, a row a job of the list: whose it is, what it asks for, when it came, started and
/// ended, and why it never runs. Unknown is empty.
std::string queue_jobs_csv(const TraceQuestion& question, const QueueRecord& record);
/// The Trace Event Format, for ui.perfetto.dev: a process a pool, rows for its nodes, and how many
/// jobs wait and GPUs are in use.
std::string queue_trace_json(const TraceQuestion& question, const QueueRecord& record);
/// A row a team.
std::string queue_teams_csv(const TraceResult& result);

using QueueSweep = SweepOf<TraceResult>;
std::string queue_sweep_table(const QueueSweep& sweep, int width = 100);
std::string queue_sweep_json(const QueueSweep& sweep);
/// RFC 4180; unknown is empty.
std::string queue_sweep_csv(const QueueSweep& sweep);

/// One line of `expect`.
ExpectationResult evaluate(const Expectation& expectation, const TraceResult& result);

}  // namespace reckon
