#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/launch/gang.h"
#include "executor/launch/local/job.h"
#include "executor/launch/seating.h"
#include "sim/scenario/plan.h"

// The processes of a job on this machine that goes on with those that are left
// (workload.restart): which of them has which rank in the next start, and which stand by, by the
// rules of seating.h.
namespace reckon {

class StandingProcesses {
 public:
  /// `job` has a restart of another kind than full. `spares`: workers of a warm_spare that stand
  /// by.
  StandingProcesses(const PlannedWorkload& job, int spares);

  /// The processes of a start: those that wait keep their rank or take a free one, others are
  /// started. In the first start all are, in a later one of an elastic job whole copies of those
  /// that wait go on, if that is enough of them; the rest stands by, and for each that is lost a
  /// new one. Throws what a start of a process throws, and SocketError.
  GangOptions seat(const LocalJob& local, std::int64_t attempt);

  int seats() const { return static_cast<int>(seats_.size()); }
  /// Whole copies of those who train and those who stand by, ready, are more than train now.
  bool could_grow() const;
  /// Tells them to leave the mesh behind a step, once a start.
  void regroup();
  /// Of a start: the steps from which those that wait can go on with what they have in memory, each
  /// part of the model in one of them at least; 0: they cannot.
  std::int64_t held_steps() const;
  /// As many can be there at once.
  int most() const { return rules_.most(); }

 private:
  using Processes = std::vector<std::shared_ptr<WatchedProcess>>;
  std::shared_ptr<WatchedProcess> start(const LocalJob& local, const RankOfJob& rank,
                                        std::int64_t attempt, const Socket& rendezvous) const;

  /// A worker goes with any of its ranks, as a pod does.
  void end_broken_workers();
  /// All ranks of its worker.
  std::span<const std::shared_ptr<WatchedProcess>> ranks_with(int rank) const;

  const PlannedWorkload& job_;
  int of_worker_ = 1;  // ranks
  SeatingRules rules_;
  Processes seats_, beside_;
  bool begun_ = false, told_ = false;
};

/// Processes that stand by for the job's warm spares: all ranks of a node each; 0: it has none.
int spare_processes(const Plan& plan);

}  // namespace reckon
