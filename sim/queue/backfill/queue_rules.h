#pragma once
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "sim/base/quantity.h"
#include "sim/queue/free_nodes.h"

namespace reckon {

/// What a scheduler with backfill asks of its policy: who comes first, on which nodes, and who is
/// held back. The defaults are those of EASY: in order of submit, everywhere, nobody.
class QueueRules {
 public:
  QueueRules() = default;
  QueueRules(const QueueRules&) = delete;
  QueueRules& operator=(const QueueRules&) = delete;
  virtual ~QueueRules() = default;

  /// The higher goes first; equals go in order of tie(), then of submit, then of the list. As of
  /// `now`, a time at which the job has come or the last that recalculates() told.
  /// In the policy's own unit, as tie() and worth().
  virtual double priority(std::size_t /*job*/, SimTime /*now*/) { return 0; }
  /// The lower goes first.
  virtual double tie(std::size_t /*job*/) const { return 0; }
  /// Jobs of one group keep the order of tie(), submit and list at all times, whatever priorities
  /// they get, and those that ask for as many GPUs are held back alike. Numbers from 0 on.
  virtual std::size_t group(std::size_t /*job*/) const { return 0; }
  /// Asked at each arrival and end, before they count: whether priorities have changed, so that
  /// those of all that wait are asked for again, of the time that it tells.
  virtual std::optional<SimTime> recalculates(SimTime /*now*/) { return std::nullopt; }
  virtual CellSet cells(std::size_t /*job*/) const { return kAllCells; }
  /// Besides, by job: where what it asks for is. Empty: everywhere. It outlives the rules' use.
  void keep_to(std::span<const CellSet> by_job) { kept_to_ = by_job; }
  CellSet nodes_of(std::size_t job) const {
    return kept_to_.empty() ? cells(job) : cells(job) & kept_to_[job];
  }
  /// A job that a limit holds back reserves nothing and blocks nobody. Who is held back stays so
  /// while others start.
  virtual bool may_start(std::size_t /*job*/) const { return true; }
  /// Whether a job that must wait has a reservation.
  virtual bool reserves() const { return true; }
  /// Jobs that one look tries, the first by priority.
  virtual std::size_t depth() const { return std::numeric_limits<std::size_t>::max(); }
  /// A job smaller than a node gets the emptiest that has room, not the fullest.
  virtual bool spreads() const { return false; }

  // ---- running jobs that go for one that waits; asked where preempts()
  virtual bool preempts() const { return false; }
  virtual bool may_preempt(std::size_t /*job*/, std::size_t /*running*/) const { return false; }
  /// The lower goes first; of equals who started last.
  virtual double worth(std::size_t /*running*/) const { return 0; }
  /// A job that started at `since` stays at least until then.
  virtual SimTime exempt_until(std::size_t /*running*/, SimTime since) const { return since; }
  /// Of the work that a job has done when it goes, what it need not do again.
  virtual SimDuration kept(SimDuration /*done*/) const { return SimDuration{0}; }
  /// A job that was chosen goes on so long before it goes.
  virtual SimDuration grace(std::size_t /*running*/) const { return SimDuration{0}; }
  /// It never comes back.
  virtual bool cancels(std::size_t /*running*/) const { return false; }
  /// From when it goes until it may start again.
  virtual SimDuration requeue_delay() const { return SimDuration{0}; }

  virtual void started(std::size_t /*job*/, SimTime /*now*/) {}
  virtual void ended(std::size_t /*job*/, SimTime /*now*/) {}
  /// Why the job can never run, whatever else waits, as a clause; nullopt: it can.
  virtual std::optional<std::string> never(std::size_t /*job*/) const { return std::nullopt; }

 private:
  std::span<const CellSet> kept_to_;
};

}  // namespace reckon
