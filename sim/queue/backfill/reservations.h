#pragma once
#include <optional>
#include <span>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/queue/backfill/waiting_jobs.h"
#include "sim/queue/free_nodes.h"

// What those that must wait keep from those behind them, in one look at the queue.
namespace reckon {

/// Of the first job that waits for these cells.
struct Reservation {
  WaitingJobs::Candidate head;
  SimTime at{};
  CellSet cells = 0;
  std::vector<NodePart> spare;  // GPUs that it leaves of the nodes that it gets
};

/// Reservations are of different cells.
class Reservations {
 public:
  void clear() {
    reservations_.clear();
    refused_.clear();
  }
  void add(Reservation made) { reservations_.push_back(std::move(made)); }
  bool empty() const { return reservations_.empty(); }
  bool bind(CellSet cells) const;
  /// Whether all heads go before the job.
  bool precede(const WaitingJobs::Candidate& job) const;

  /// Free GPUs that a job on these cells which runs until `end` has to leave.
  std::vector<NodePart> kept_from(CellSet cells, SimTime end, const FreeNodes& nodes) const;
  /// A job that runs until `end` started on these.
  void took(std::span<const NodePart> held, SimTime end);

  /// A job that would have run until `end` was refused, though it fits. Every job that asks for no
  /// less of the same cells, and outlives the same reservations, is refused in this look as well:
  /// who starts leaves less to all others.
  void refuse(const WaitingJobs::Lane& lane, SimTime end);
  /// Jobs of the lane that end after it were refused; nullopt: none was.
  std::optional<SimTime> refused_after(const WaitingJobs::Lane& lane) const;

 private:
  struct Refused {
    WaitingJobs::Lane lane;
    SimTime after{};
  };
  std::vector<Reservation> reservations_;
  std::vector<Refused> refused_;
};

}  // namespace reckon
