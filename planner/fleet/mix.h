#pragma once
#include "planner/fleet/fleet.h"

// The pool mix as a mixed-integer program.
//
//   x(j,k,s) in {0,1}   job j runs as option k from start s: its submit, or a later border of a
//   slot F(o) whole          held nodes of pool o, paid for the period T; at most the reservation's
//   E(o) >= 0           when the last job of pool o ends; its cluster's fee runs until then
//
//   min  sum x (c(k) + w (s - submit)) + sum F(o) T p(o) + sum E(o) f(o)
//   one option and start for each job:           sum over k, s of x(j,k,s) = 1
//   held nodes hold what runs on them, each slot: sum n(k) x <= F(o)
//   quotas, each slot: accelerators of all that runs, held ones all the time, <= quota
//   E(o) >= (s + t(k)) x(j,k,s), summed over the options of j in o
//   budget: the cost above <= budget
//
// w is so small that it decides between equals only: nothing waits for nothing.
//
// A job is in each slot that it touches, so that what the program calls possible is so for the mean
// times. Starts whose end misses the job's deadline or the period are left out. The statistics
// of times are those of the job alone: that a job may be late because the one before it in the same
// nodes is, only the replay says.
namespace reckon::planner {

/// Which limits hold, and which one is to be stretched as little as possible instead.
struct MixQuestion {
  bool quota = true, deadlines = true, budget = true, period = true;
  enum class Least { objective, quota, lateness, cost } least = Least::objective;
};

struct MixAnswer {
  MipSolution::Status status = MipSolution::Status::unavailable;
  std::string why;
  FleetChoice choice;
  double objective = 0, bound = 0;  // USD; Fleet::by_time: seconds; else in the unit of `least`
  std::size_t columns = 0, rows = 0;
};

/// Slots that the period is cut into, and later starts of one option that are tried at most.
inline constexpr int kSlots = 96;
inline constexpr int kStarts = 24;
/// w, USD for an hour of waiting: a judgement.
inline constexpr double kWaiting = 1e-4;

MixAnswer solve_pool_mix(const Fleet& fleet, const MixQuestion& question = {});

/// The program itself, for tests.
struct MixProgram {
  struct Start {
    std::size_t job = 0, option = 0, column = 0;
    double at = 0;  // seconds, as FleetJob::submit
  };
  Mip mip;
  std::vector<Start> starts;
  std::vector<std::size_t> held, end;  // columns by pool; kNoColumn: none
  static constexpr std::size_t kNoColumn = std::size_t(-1);
};
MixProgram pool_mix_program(const Fleet& fleet, const MixQuestion& question = {});

}  // namespace reckon::planner
