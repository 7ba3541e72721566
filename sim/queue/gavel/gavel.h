#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/cluster/job_request.h"
#include "sim/queue/gavel/allocation.h"
#include "sim/queue/job_times.h"

// Jobs of so many steps (StepsByKind) on a cluster of several kinds of accelerators, scheduled in
// rounds: Gavel, Narayanan et al. 2020, "Heterogeneity-Aware Cluster Scheduling Policies for Deep
// Learning Workloads" (OSDI '20), under its policy fifo_perf and under those of allocation.h. What
// happens within a round is that of its simulator, stanford-futuredata/gavel,
// scheduler/scheduler.py (simulate) and policies/fifo.py.
namespace reckon {

/// Steps per second of a job type by kind of accelerator ("v100"), each alone on its GPUs.
class ThroughputTable {
 public:
  void set(const std::string& kind, const std::string& type, int gpus, double steps_per_second);
  /// nullptr: no kind has the type on so many GPUs; else by kind, 0 where it does not run.
  const std::map<std::string, double>* of(const std::string& type, int gpus) const;

 private:
  // Steps per second, by type and GPUs, then kind.
  std::map<std::pair<std::string, int>, std::map<std::string, double>> by_type_;
};

/// {"v100": {"('ResNet-18 (batch size 16)', 1)": {"null": 4.79, ...}}}: Gavel's JSON; pairs of jobs
/// on one GPU are not read. Errors: no JSON (with its line), another shape, a negative rate.
Expected<ThroughputTable> read_throughputs(const std::string& file, std::string_view bytes);

struct GavelRules {
  SchedulingPolicy policy = SchedulingPolicy::fifo_perf;
  Seconds round{360};               // time_per_iteration
  Seconds between_decisions{1920};  // minimum_time_between_allocation_resets
};

struct GavelList {
  std::vector<JobRequest> jobs;
  /// Jobs before the measured window. Where Gavel writes a list (output_trace_file_name), the job
  /// that opens the window stands among those that run already and once more behind them, for it
  /// has been added when they are written: the first of the two is left out, and the window begins
  /// with the second, whether `running` counted it or not.
  std::size_t running = 0;
  int repeated_line = 0;  // line of the job that was left out; 0: none
};
/// job_id,job_type,total_steps,gpus,arrival_seconds; arrivals ascend. `kinds` in alphabetical
/// order. Errors: a type that the table lacks, for each line; `running` beyond the list.
Expected<GavelList> read_gavel_jobs(const std::string& file, std::string_view bytes,
                                    const ThroughputTable& table,
                                    const std::vector<GavelKind>& kinds, std::size_t running);

/// A job on GPUs of a kind in one round.
struct GavelStretch {
  std::size_t job = 0, kind = 0;
  SimTime begin{}, end{};
  std::int64_t steps = 0;
};

/// fifo_perf: a decision hands GPUs to jobs in order of the list, each on the kind with its highest
/// rate among those with enough GPUs free (the first by alphabet of equals); who finds none ends
/// the decision, who has rate 0 on all is passed over. Every decision begins anew: a job moves when
/// a faster kind became free, and loses its GPU to nobody behind it.
/// A round begins when the last job of the round before is done with its steps: floor(rate x round)
/// of them, or what is left of it. A decision is taken at the begin of a round, when a job came or
/// ended since the last, and `between_decisions` passed (at time 0 always): until then who came
/// waits and what became free idles. A job ends when its last step does, not with the round.
/// Where nothing runs the clock goes on to the next arrival.
/// The other policies: a decision allocates shares of time (allocate()), and each round hands GPUs
/// to pairs of job and kind in order of their priority, X_mj / f_mj (Sec. 5 of the paper): f_mj is
/// the share of the time that all jobs had on the kind since the decision. Of equal ones goes first
/// who is owed most of what earlier decisions promised, then who has the larger share, then the
/// kind on which jobs are faster on average, then the order of the list. A job without a share,
/// that came after the decision or has enough on another kind, gets what is left. As in
/// scheduler.py, each starts with half a round on each kind, so that what is new does not go before
/// all others for long. A job that had a GPU and has none in the next round counts as suspended.
/// Ends with the last of jobs `first_measured` .. + `measured`.
/// Differs from Gavel only where a kind makes less than one step in a round: it counts as rate 0.
QueueRun run_gavel(const std::vector<JobRequest>& jobs, const std::vector<GavelKind>& kinds,
                   const GavelRules& rules, std::size_t first_measured, std::size_t measured,
                   std::vector<GavelStretch>* stretches = nullptr);

}  // namespace reckon
