#include "sim/queue/preemptive.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/check.h"
#include "sim/queue/free_nodes.h"

namespace reckon {
namespace {

class Preemptive {
 public:
  Preemptive(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
             PreemptiveOrder order, const RunOptions& options, QueueRun& run)
      : jobs_(jobs),
        by_(order),
        options_(options),
        run_(run),
        empty_(groups),
        nodes_(groups),
        scratch_(groups),
        left_(jobs.size()),
        had_(jobs.size()),
        since_(jobs.size()) {
    RECKON_CHECK(options.running.empty());
  }

  void simulate() {
    std::vector<std::size_t> order(jobs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return jobs_[a].submit < jobs_[b].submit;
    });
    held_.resize(jobs_.size());
    auto next = order.begin();
    while (next != order.end() || !running_.empty() || !waiting_.empty()) {
      const bool none = running_.empty() && waiting_.empty();
      SimTime at = next_look();
      if (next != order.end()) at = none ? jobs_[*next].submit : std::min(at, jobs_[*next].submit);
      advance_to(at);
      for (; next != order.end() && jobs_[*next].submit <= now_; ++next) arrive(*next);
      decide();
    }
    std::sort(run_.never.begin(), run_.never.end());
  }

 private:
  /// A job in the order of the look: the lower key goes first, of equals who runs, then the older.
  struct Place {
    double key = 0;
    bool waits = false;
    SimTime submit{};
    std::size_t job = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  SimDuration length(std::size_t j) const { return std::get<FixedTime>(jobs_[j].work).time; }
  bool runs(std::size_t j) const { return !held_[j].empty(); }
  /// On the nodes that it holds.
  SimDuration time_left(std::size_t j) const { return options_.time(j, held_[j], left_[j]); }
  /// GPU seconds had so far.
  double attained(std::size_t j) const {
    return to_seconds(had_[j]).count() * jobs_[j].whole_gpus();
  }
  double key(std::size_t j) const {
    return by_ == PreemptiveOrder::shortest_remaining ? to_seconds(left_[j]).count() : attained(j);
  }
  Place place_of(std::size_t j, bool waits) const { return {key(j), waits, jobs_[j].submit, j}; }

  void arrive(std::size_t j) {
    if (!empty_.fits(jobs_[j].gpus(), options_.cells_of(j))) return run_.never.push_back(j);
    left_[j] = length(j);
    wait(j);
  }

  std::pair<int, CellSet> lane_of(std::size_t j) const {
    return {jobs_[j].gpus(), options_.cells_of(j)};
  }
  void wait(std::size_t j) { waiting_[lane_of(j)].insert(place_of(j, true)); }
  void stop_waiting(std::size_t j) {
    const auto lane = waiting_.find(lane_of(j));
    lane->second.erase(place_of(j, true));
    if (lane->second.empty()) waiting_.erase(lane);
  }

  /// When a job ends, or one that waits is due; only called where some job is there.
  SimTime next_look() const {
    SimTime at = SimTime::max();
    for (const std::size_t j : running_) at = std::min(at, now_ + time_left(j));
    if (by_ == PreemptiveOrder::shortest_remaining || waiting_.empty()) return at;
    double least_waiting = std::numeric_limits<double>::infinity();
    for (const auto& [alike, lane] : waiting_)
      least_waiting = std::min(least_waiting, lane.begin()->key);
    for (const std::size_t j : running_) {
      const Seconds until{(least_waiting - attained(j)) / jobs_[j].whole_gpus()};
      at = std::min(at, now_ + to_clock(std::max(until, kLeastQuantum)));
    }
    return at;
  }

  void advance_to(SimTime at) {
    const SimDuration passed = at - now_;
    now_ = at;
    for (const std::size_t j : running_) {
      left_[j] =
          passed >= time_left(j) ? SimDuration{0} : left_[j] - options_.work(j, held_[j], passed);
      had_[j] += passed;
      run_.gpu_seconds += to_seconds(passed).count() * jobs_[j].whole_gpus();
      if (left_[j] > SimDuration{0}) continue;
      run_.jobs[j].end = now_;
      release(j);
    }
    std::erase_if(running_, [&](std::size_t j) { return run_.jobs[j].end.has_value(); });
  }

  void release(std::size_t j) {
    nodes_.give_back(held_[j]);
    options_.note(j, held_[j], since_[j], now_);
    held_[j].clear();
  }

  void decide() {
    const std::vector<std::size_t> wanted = who_runs();
    std::vector<std::size_t> sorted = wanted;
    std::sort(sorted.begin(), sorted.end());
    for (const std::size_t j : running_)
      if (!std::binary_search(sorted.begin(), sorted.end(), j)) {
        release(j);
        ++run_.jobs[j].preemptions;
        wait(j);
      }
    for (const std::size_t j : wanted)
      if (!runs(j)) stop_waiting(j);
    place(wanted);
    running_ = wanted;
  }

  /// By the order alone, on nodes that are all free. Of jobs that wait for as many GPUs only the
  /// first comes into question: where it does not fit, those behind it do not.
  std::vector<std::size_t> who_runs() {
    std::vector<Place> running;
    for (const std::size_t j : running_) running.push_back(place_of(j, false));
    std::sort(running.begin(), running.end());
    using Cursor = std::pair<std::set<Place>::const_iterator, std::set<Place>::const_iterator>;
    std::vector<Cursor> lanes;
    for (const auto& [alike, lane] : waiting_) lanes.emplace_back(lane.begin(), lane.end());
    std::vector<std::size_t> wanted;
    std::vector<NodePart> taken;
    for (auto next = running.begin(); scratch_.free() > 0;) {
      const auto first =
          std::min_element(lanes.begin(), lanes.end(),
                           [](const Cursor& a, const Cursor& b) { return *a.first < *b.first; });
      const bool of_waiting =
          first != lanes.end() && (next == running.end() || *first->first < *next);
      if (!of_waiting && next == running.end()) break;
      const std::size_t j = of_waiting ? first->first->job : (next++)->job;
      const CellSet cells = options_.cells_of(j);
      const bool fits = scratch_.fits(jobs_[j].gpus(), cells);
      if (fits) {
        const auto parts = scratch_.take(jobs_[j].gpus(), cells);
        taken.insert(taken.end(), parts.begin(), parts.end());
        wanted.push_back(j);
      }
      if (of_waiting && (!fits || ++first->first == first->second)) lanes.erase(first);
    }
    scratch_.give_back(taken);
    return wanted;
  }

  /// Those that run keep their GPUs; if the others do not fit between them, all move.
  void place(const std::vector<std::size_t>& wanted) {
    for (const bool moved : {false, true}) {
      bool all = true;
      for (const std::size_t j : wanted) {
        if (runs(j)) continue;
        if (!nodes_.fits(jobs_[j].gpus(), options_.cells_of(j))) {
          all = false;
          break;
        }
        held_[j] = nodes_.take(jobs_[j].gpus(), options_.cells_of(j));
        since_[j] = now_;
        if (!run_.jobs[j].start) run_.jobs[j].start = now_;
      }
      RECKON_CHECK(all || !moved);  // in this order they fit on free nodes
      if (all) return;
      for (const std::size_t j : wanted)
        if (runs(j)) release(j);
    }
  }

  std::span<const JobRequest> jobs_;
  PreemptiveOrder by_;
  const RunOptions& options_;
  QueueRun& run_;
  const FreeNodes empty_;
  FreeNodes nodes_;
  FreeNodes scratch_;                        // all free but within a decision
  std::vector<SimDuration> left_;            // by job: work
  std::vector<SimDuration> had_;             // by job: time on GPUs
  std::vector<SimTime> since_;               // by job: it holds its GPUs
  std::vector<std::vector<NodePart>> held_;  // by job; empty: it does not run
  std::vector<std::size_t> running_;         // in the order of the last look
  /// By GPUs that they ask for, and where; no entry is empty.
  std::map<std::pair<int, CellSet>, std::set<Place>> waiting_;
  SimTime now_{};
};

}  // namespace

QueueRun run_preemptive(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                        PreemptiveOrder order, std::size_t first_measured, std::size_t measured,
                        const RunOptions& options) {
  QueueRun run = queue_of_jobs(jobs, first_measured, measured);
  Preemptive(jobs, groups, order, options, run).simulate();
  summarize(run, whole_gpus_of(groups));
  return run;
}

}  // namespace reckon
