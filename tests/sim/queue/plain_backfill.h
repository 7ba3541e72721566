#pragma once
#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "sim/queue/backfill/backfill.h"
#include "sim/queue/backfill/waiting_jobs.h"

// Backfill that looks at each job that waits, one after the other: what run_backfill has to agree
// with.
namespace reckon::test {

class PlainBackfill {
 public:
  PlainBackfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                QueueRules& rules, QueueRun& run)
      : jobs_(jobs),
        rules_(rules),
        run_(run),
        empty_(groups),
        nodes_(groups),
        held_(jobs.size()),
        rank_(jobs.size()) {}

  void simulate() {
    std::vector<std::size_t> order(jobs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return jobs_[a].submit < jobs_[b].submit;
    });
    for (std::size_t k = 0; k < order.size(); ++k) rank_[order[k]] = k;
    auto next = order.begin();
    while (next != order.end() || !ends_.empty()) {
      const bool ends =
          !ends_.empty() && (next == order.end() || ends_.top().first <= jobs_[*next].submit);
      now_ = ends ? ends_.top().first : jobs_[*next].submit;
      if (const auto at = rules_.recalculates(now_)) recalculate(*at);
      while (!ends_.empty() && ends_.top().first <= now_) end_first();
      for (; next != order.end() && jobs_[*next].submit <= now_; ++next) arrive(*next);
      look_at_queue();
    }
    std::sort(run_.never.begin(), run_.never.end());
  }

 private:
  using Timed = std::pair<SimTime, std::size_t>;  // when, and which job
  struct Waiting {
    double priority = 0, tie = 0;
    std::size_t rank = 0, job = 0;
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return std::tie(b.priority, a.tie, a.rank) < std::tie(a.priority, b.tie, b.rank);
    }
  };
  /// Of the first job that waits for these cells.
  struct Reservation {
    SimTime at{};
    CellSet cells = 0;
    std::vector<NodePart> spare;  // GPUs that it leaves of the nodes that it gets
  };

  const FixedTime& fixed(std::size_t job) const { return std::get<FixedTime>(jobs_[job].work); }
  SimTime end_at_limit(std::size_t job) const { return now_ + longest_time(jobs_[job]); }

  void arrive(std::size_t j) {
    if (!empty_.fits(jobs_[j].gpus(), rules_.cells(j)) || rules_.never(j))
      run_.never.push_back(j);
    else
      waiting_.insert({rules_.priority(j, now_), rules_.tie(j), rank_[j], j});
  }

  void recalculate(SimTime at) {
    if (waiting_.empty()) return;
    std::vector<Waiting> anew(waiting_.begin(), waiting_.end());
    for (Waiting& w : anew) w.priority = rules_.priority(w.job, at);
    std::sort(anew.begin(), anew.end());
    waiting_ = std::set<Waiting>(anew.begin(), anew.end());
  }

  void start(std::size_t j) {
    const JobRequest& job = jobs_[j];
    held_[j] = nodes_.take(job.gpus(), rules_.cells(j));
    run_.jobs[j].start = now_;
    run_.jobs[j].end = now_ + fixed(j).time;
    run_.gpu_seconds += to_seconds(fixed(j).time).count() * job.gpus();
    ends_.push({now_ + fixed(j).time, j});
    expected_.insert({end_at_limit(j), j});
    rules_.started(j, now_);
  }

  void end_first() {
    const auto [at, j] = ends_.top();
    ends_.pop();
    expected_.erase({*run_.jobs[j].start + longest_time(jobs_[j]), j});
    nodes_.give_back(held_[j]);
    held_[j] = {};
    rules_.ended(j, at);
  }

  void look_at_queue() {
    reservations_.clear();
    too_large_.clear();
    std::size_t looks = 0;
    for (auto at = waiting_.begin(); at != waiting_.end() && nodes_.free() > 0;) {
      if (++looks > rules_.depth()) return;
      const std::size_t j = at->job;
      const bool starts = rules_.may_start(j) && try_start(j, std::next(at) == waiting_.end());
      at = starts ? waiting_.erase(at) : std::next(at);
    }
  }

  /// `last`: nobody is behind it, so that a reservation would bind nobody.
  bool try_start(std::size_t j, bool last) {
    const CellSet cells = rules_.cells(j);
    const bool behind = std::any_of(reservations_.begin(), reservations_.end(),
                                    [&](const Reservation& r) { return (r.cells & cells) != 0; });
    if (fits(jobs_[j].gpus(), cells)) {
      if (behind) return start_behind(j, cells);
      start(j);
      return true;
    }
    if (!behind && !last && rules_.reserves()) reserve(j, cells);
    return false;
  }

  /// As FreeNodes::fits; what did not fit earlier in this look is not asked again, nor is more.
  bool fits(int gpus, CellSet cells) {
    const auto known = std::find_if(too_large_.begin(), too_large_.end(),
                                    [&](const auto& entry) { return entry.first == cells; });
    if (known != too_large_.end() && gpus >= known->second) return false;
    if (nodes_.fits(gpus, cells)) return true;
    if (known != too_large_.end())
      known->second = gpus;
    else
      too_large_.emplace_back(cells, gpus);
    return false;
  }

  /// Lets running jobs end at their limits until the job fits, notes what it leaves of the nodes
  /// that it gets, and takes it all back.
  void reserve(std::size_t head, CellSet cells) {
    std::vector<std::size_t> ended;
    Reservation reserved{now_, cells, {}};
    for (const auto& [at, j] : expected_) {
      if (nodes_.fits(jobs_[head].gpus(), cells)) break;
      reserved.at = std::max(now_, at);
      nodes_.give_back(held_[j]);
      ended.push_back(j);
    }
    const std::vector<NodePart> gets = nodes_.take(jobs_[head].gpus(), cells);
    for (const NodePart& part : gets)
      reserved.spare.push_back({part.node, nodes_.free_of(part.node)});
    nodes_.give_back(gets);
    for (const std::size_t j : ended) nodes_.take_again(held_[j]);
    reservations_.push_back(std::move(reserved));
  }

  /// It fits, and jobs before it have reservations.
  bool start_behind(std::size_t j, CellSet cells) {
    // It would still run then: of the reserved nodes only what is spare.
    std::vector<NodePart> kept;
    for (const Reservation& r : reservations_) {
      if ((r.cells & cells) == 0 || end_at_limit(j) <= r.at) continue;
      for (const NodePart& spare : r.spare)
        if (const int more = nodes_.free_of(spare.node) - spare.gpus; more > 0)
          kept.push_back({spare.node, more});
    }
    nodes_.take_again(kept);
    const bool fits = nodes_.fits(jobs_[j].gpus(), cells);
    if (fits) {
      start(j);
      for (Reservation& r : reservations_) {
        if (end_at_limit(j) <= r.at) continue;
        for (NodePart& spare : r.spare)
          for (const NodePart& part : held_[j])
            if (part.node == spare.node) spare.gpus -= part.gpus;
      }
    }
    nodes_.give_back(kept);
    return fits;
  }

  std::span<const JobRequest> jobs_;
  QueueRules& rules_;
  QueueRun& run_;
  const FreeNodes empty_;
  FreeNodes nodes_;
  std::vector<std::vector<NodePart>> held_;  // by job
  std::vector<std::size_t> rank_;            // by job, in order of submit
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> ends_;
  std::set<Timed> expected_;  // of running jobs, their ends at the limit
  std::set<Waiting> waiting_;
  SimTime now_{};
  std::vector<Reservation> reservations_;           // of this look
  std::vector<std::pair<CellSet, int>> too_large_;  // of this look: so many GPUs do not fit
};

inline QueueRun plain_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                               QueueRules& rules) {
  QueueRun run = queue_of_jobs(jobs, 0, jobs.size());
  PlainBackfill(jobs, groups, rules, run).simulate();
  summarize(run, gpus_of(groups));
  return run;
}

}  // namespace reckon::test
