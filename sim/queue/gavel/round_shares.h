#pragma once
#include <span>
#include <vector>

#include "sim/cluster/job_request.h"
#include "sim/queue/gavel/gavel.h"

namespace reckon {

/// Gavel's round-based mechanism (Sec. 5 of the paper): which jobs run in the next round, so that
/// over the rounds each has its share of time on each kind. What each has had is counted as
/// scheduler.py does (_update_priorities, _reset_time_run_so_far,
/// _schedule_jobs_on_workers_helper).
class RoundShares {
 public:
  RoundShares(std::span<const JobRequest> jobs, std::span<const GavelKind> kinds,
              const GavelRules& rules);

  void arrive(std::size_t job);
  /// Allocates anew to the jobs that are there, with what is left of their steps.
  void decide(std::span<const std::size_t> active, std::span<const std::int64_t> left, SimTime now);
  /// The kind of each for the next round into `on`, -1: none; counts who is suspended.
  void choose(std::span<const std::size_t> active, std::vector<int>& on, QueueRun& run) const;
  void ran(std::size_t job, int kind, SimDuration time);

 private:
  struct Entry {
    double share = 0;  // X_mj
    double had = 0;    // seconds on the kind since the decision
    double owed = 0;   // seconds that earlier decisions promised
  };
  /// A job's numbers by kind are next to each other.
  std::size_t at(std::size_t job, std::size_t kind) const { return job * kinds_.size() + kind; }
  double priority(std::size_t job, std::size_t kind) const;  // X_mj / f_mj, no unit
  /// Steps per second; 0: it makes no step in a round there, or its GPUs are not there.
  double rate(std::size_t job, std::size_t kind) const;
  void settle(std::span<const std::size_t> active, SimTime now);
  void add_claims(std::span<const std::size_t> active, std::span<const std::int64_t> left,
                  SimTime now, std::vector<GavelClaim>& claims);

  std::span<const JobRequest> jobs_;
  std::span<const GavelKind> kinds_;
  const GavelRules& rules_;
  std::vector<Entry> entries_;
  std::vector<double> had_by_all_;  // seconds, by kind
  std::vector<std::size_t> order_;  // of kinds, the faster first
  // By job, for finish-time fairness:
  std::vector<std::int64_t> counted_;  // steps left, at the last decision
  std::vector<double> isolated_rate_;  // steps per second on its n-th since then
  std::vector<Seconds> alone_so_far_;
  SimTime decided_{};
};

}  // namespace reckon
