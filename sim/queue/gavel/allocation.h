#pragma once
#include <span>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/scenario/spec/scheduler.h"

// What share of its time each job should have on each kind of accelerator: the policies of Gavel
// [Narayanan, Santhanam, Kazhamiaka, Phanishayee and Zaharia 2020, "Heterogeneity-Aware Cluster
// Scheduling Policies for Deep Learning Workloads", OSDI '20] as linear programs over the matrix of
// throughputs T, for X:
//   throughput(m, X) = sum_j T_mj X_mj, X_mj >= 0, sum_j X_mj <= 1, sum_m X_mj g_m <= n_j  (Sec. 3)
// of jobs m with g_m GPUs and kinds j with n_j GPUs. Pairs of jobs on one GPU are not considered.
namespace reckon {

struct GavelKind {
  std::string name;
  int gpus = 0;
};

/// What a policy knows of a job that is there.
struct GavelClaim {
  std::vector<double> rates;  // steps per second by kind; 0: it does not run there; one is above
  int gpus = 1;
  double steps = 1;        // that are left
  Seconds since_submit{};  // t_m
  Seconds alone_so_far{};  // what its steps until now would have taken on its n-th of the cluster
};

/// Shares of time by job and kind.
class GavelAllocation {
 public:
  GavelAllocation() = default;
  GavelAllocation(std::size_t jobs, std::size_t kinds) : kinds_(kinds), x_(jobs * kinds) {}
  std::size_t jobs() const { return kinds_ == 0 ? 0 : x_.size() / kinds_; }
  double& at(std::size_t job, std::size_t kind) { return x_[job * kinds_ + kind]; }
  double at(std::size_t job, std::size_t kind) const { return x_[job * kinds_ + kind]; }
  double throughput(std::size_t job, const GavelClaim& claim) const;  // steps per second

 private:
  std::size_t kinds_ = 0;
  std::vector<double> x_;  // shares of time, job by job
};

/// Steps per second where the job has the same share of time on each GPU of the cluster, X^equal of
/// Sec. 4.1: X_mj = n_j over all GPUs.
double equal_throughput(const GavelClaim& claim, std::span<const GavelKind> kinds);
/// Steps per second on an n-th of each kind, X^isolated of Sec. 4.2: X_mj = n_j / (jobs g_m), and
/// no more than all of its time.
double isolated_throughput(const GavelClaim& claim, std::span<const GavelKind> kinds,
                           std::size_t jobs);

/// max_min_fairness_perf: max min_m g_m throughput(m, X) / throughput(m, X^equal)   (Sec. 4.1)
/// max_min_fairness_water_filling_perf: the same, and of all such X that with the highest second
///   lowest value, and so on                                                        (Sec. 4.3)
/// finish_time_fairness_perf: min max_m rho(m, X), the time from submit to end over that on an n-th
///   of the cluster; Themis [Mahajan et al. 2020, NSDI '20]                         (Sec. 4.2)
/// min_total_duration_perf: min max_m steps_m / throughput(m, X), the makespan      (Sec. 4.2)
/// Without _perf they are blind to the kinds: as if each were as fast as the fastest on which the
/// job runs. (Gavel's code takes the V100's throughput, or 1 under max_min_fairness: the same
/// where the V100 is the fastest.)
/// An optimum of several is the solver's choice. Needs a solver (linear_program.h).
GavelAllocation allocate(SchedulingPolicy policy, std::span<const GavelClaim> claims,
                         std::span<const GavelKind> kinds);

}  // namespace reckon
