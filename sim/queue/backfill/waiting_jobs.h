#pragma once
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "sim/cluster/job_request.h"
#include "sim/queue/backfill/first_below.h"
#include "sim/queue/backfill/queue_rules.h"

namespace reckon {

/// What a job may take at most: its limit, or its length where it has none.
SimDuration longest_time(const JobRequest& job);

/// Jobs that wait, in order of priority, of which a scheduler's look tries the first `depth` of its
/// rules. They are kept by lanes, of jobs that differ in their limits only: what a look finds out
/// of one job holds for the lane, so it visits jobs that may start and not all that wait. Adding,
/// removing and the next job of a lane cost O(log n); new priorities O(groups + depth log groups).
class WaitingJobs {
 public:
  WaitingJobs(std::span<const JobRequest> jobs, QueueRules& rules);

  struct Lane {
    CellSet cells = 0;
    int gpus = 0;
  };
  /// A job of a lane.
  struct Candidate {
    double priority = 0;  // QueueRules::priority()
    std::size_t rank = 0, job = 0, lane = 0, place = 0;
    /// Goes first.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.rank < b.rank;
    }
  };

  bool empty() const { return waiting_ == 0; }
  /// Jobs in order of submit, equal ones in that of the list.
  std::span<const std::size_t> in_order() const { return order_; }
  const Lane& lane(std::size_t lane) const { return lanes_[lane].alike; }
  Candidate candidate(std::size_t job) const;
  /// Whether a look tries the first of them only.
  bool bounded() const { return depth_ < jobs_.size(); }

  void add(std::size_t job);
  void remove(const Candidate& candidate);
  /// One that waits, between two looks.
  void take_out(std::size_t job);
  /// Priorities are as of `at` from now on, those of later jobs as of their submit.
  void recalculate(SimTime at);

  /// The first of each lane that has one, in no order. Jobs that are removed after it do not let
  /// others come within the depth before the next call.
  void begin_look(std::vector<Candidate>& firsts);
  /// Of its lane, the first behind it with a limit below `limit`; false: there is none.
  bool next(Candidate& candidate, std::int64_t limit) const;

 private:
  struct OfLane {
    Lane alike;
    std::size_t first = 0;    // of its jobs in by_lane_
    FirstBelow limits;        // of those that wait within the depth, by place
    bool active = false;      // in active_
    Candidate head;           // the first of them, where it is known as of now
    std::uint64_t known = 0;  // priorities_ of it; 0: never
  };
  struct OfGroup {
    std::set<std::size_t> ranks;           // of its jobs that wait
    std::set<std::size_t>::iterator next;  // the first of them that is not within the depth
  };
  struct Ordered {
    double priority = 0;  // QueueRules::priority()
    std::size_t rank = 0;
    friend bool operator<(const Ordered& a, const Ordered& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.rank < b.rank;
    }
  };
  Ordered ordered(std::size_t job) const;
  void make_lanes(std::span<const JobRequest> jobs);
  void show(std::size_t job);
  void hide(std::size_t job);
  void fill();
  void admit_next();

  std::span<const JobRequest> jobs_;
  QueueRules& rules_;
  std::size_t depth_ = 0, waiting_ = 0;
  std::vector<std::size_t> order_;           // in order of submit
  std::vector<std::size_t> rank_, by_rank_;  // of jobs that are as good; and back
  std::vector<std::uint32_t> lane_, place_;  // by job
  std::vector<std::size_t> by_lane_;         // jobs, lane by lane
  std::vector<OfLane> lanes_;
  std::vector<std::size_t> active_;  // lanes that have a job
  std::vector<OfGroup> groups_;      // only where the depth bounds
  std::set<Ordered> within_;         // the depth; likewise
  std::uint64_t priorities_ = 1;     // how often they were calculated anew
  SimTime recalculated_{};
};

}  // namespace reckon
