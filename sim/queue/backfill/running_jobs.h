#pragma once
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/queue/backfill/queue_rules.h"
#include "sim/queue/free_nodes.h"

namespace reckon {

/// What jobs that run hold, and until when.
class RunningJobs {
 public:
  using Timed = std::pair<SimTime, std::size_t>;  // when, and which job

  explicit RunningJobs(std::size_t jobs) : held_(jobs), since_(jobs), expected_end_(jobs) {}

  /// Empty: it does not run.
  const std::vector<NodePart>& held(std::size_t j) const { return held_[j]; }
  /// Its last start.
  SimTime since(std::size_t j) const { return since_[j]; }
  /// By their ends at the limit, or of their grace.
  const std::set<Timed>& by_end() const { return by_end_; }
  /// Those that were chosen to go, and when.
  const std::set<Timed>& leaving() const { return leaving_; }

  void start(std::size_t j, std::vector<NodePart> on, SimTime now) {
    held_[j] = std::move(on);
    since_[j] = now;
  }
  void expect(std::size_t j, SimTime end) {
    by_end_.insert({end, j});
    expected_end_[j] = end;
  }
  void leave_at(std::size_t j, SimTime at) {
    by_end_.erase({expected_end_[j], j});
    expect(j, at);
    leaving_.insert({at, j});
  }
  /// It runs no more; what it held.
  std::vector<NodePart> end(std::size_t j) {
    by_end_.erase({expected_end_[j], j});
    leaving_.erase({expected_end_[j], j});
    return std::exchange(held_[j], {});
  }

 private:
  std::vector<std::vector<NodePart>> held_;  // by job, as the next two
  std::vector<SimTime> since_;
  std::vector<SimTime> expected_end_;
  std::set<Timed> by_end_, leaving_;
};

/// Running jobs that go for one that waits.
struct Victims {
  std::vector<std::size_t> jobs;
  bool suffice = false;                           // with those that leave already
  SimTime soonest_exempt_until = SimTime::max();  // of those that may not go yet; max(): none
};
/// The fewest running jobs that `j` may preempt, so that it fits its GPUs on these cells. They go
/// in the order of their worth until it fits, beside those that were chosen before; of them those
/// without whom it fits as well stay, the most valuable first. `nodes` is as before at the end.
Victims victims_for(std::size_t j, int gpus, CellSet cells, SimTime now, const RunningJobs& running,
                    const QueueRules& rules, FreeNodes& nodes);

}  // namespace reckon
