#pragma once
#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "sim/scenario/plan.h"

// Which of the processes that are there has which rank in the next start of a job that goes on with
// those that are left (workload.restart), and which stand by: for processes of this machine
// (StandingProcesses) and for pods (kubernetes::StandingPods) alike. The sizes are the forecast's
// (sim/scenario/restart.h).
namespace reckon {

struct SeatingRules {
  RestartKind kind = RestartKind::in_place;
  int wanted = 1;   // ranks of the whole job; where workers are seated: workers, here and below
  int of_copy = 1;  // ranks that come and go together
  int least = 1;    // fewest ranks of an elastic job
  int spares = 0;   // processes that stand by beside the ranks
  /// Which part of the model a seat of so many holds: who held it goes on with it, if it can.
  /// Empty: each holds all that is held.
  std::function<int(int seat, int seats)> part = {};
  /// As many can be there at once.
  int most() const { return wanted + spares; }
};
/// Who has a seat: each rank, as processes of a machine have, or each worker with all of its ranks,
/// as pods have.
enum class Seated { ranks, workers };
/// Of a job with a restart of another kind than full. `spares`: workers; used by a warm_spare.
SeatingRules seating_rules(const PlannedWorkload& job, int spares, Seated who);

/// One that is there when a start begins.
struct StandingMember {
  int rank = -1;       // in the last start; -1: it had none
  int of = 0;          // ranks of that, where it holds the state of it; 0: it does not
  bool waits = false;  // for an order, or will as soon as it has left the last start
};

struct Seating {
  /// Nobody who is there: somebody new.
  static constexpr int kNew = -1;
  std::vector<int> seats;   // by rank: the place of who has it among those that are there
  std::vector<int> beside;  // places of those that stand by
  bool is_complete() const { return std::ranges::find(seats, kNew) == seats.end(); }
};
/// Those that waited in a rank keep it where the job is whole, and it holds what they held; else
/// they go to a seat that does. Those that wait go before those that still start, by their ranks.
/// `first`: of the job, which waits for all ranks. In a later start of an elastic job whole copies
/// of those that wait go on, if that is enough of them.
Seating seats_of_start(std::span<const StandingMember> there, const SeatingRules& rules,
                       bool first);

/// Whole copies of so many that train, and of those that stand by and wait, are more than train
/// now. Of an elastic job.
bool could_grow(const SeatingRules& rules, int training, int waiting);

}  // namespace reckon
