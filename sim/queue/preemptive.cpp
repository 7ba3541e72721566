#include "sim/queue/preemptive.h"

#include <algorithm>
#include <limits>
#include <numeric>

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
    while (next != order.end() || !live_.empty()) {
      SimTime at = next_look();
      if (next != order.end())
        at = live_.empty() ? jobs_[*next].submit : std::min(at, jobs_[*next].submit);
      advance_to(at);
      for (; next != order.end() && jobs_[*next].submit <= now_; ++next) arrive(*next);
      decide();
    }
    std::sort(run_.never.begin(), run_.never.end());
  }

 private:
  static constexpr double kNobodyWaits = std::numeric_limits<double>::infinity();

  SimDuration length(std::size_t j) const { return std::get<FixedTime>(jobs_[j].work).time; }
  bool runs(std::size_t j) const { return !held_[j].empty(); }
  /// GPU seconds had so far.
  double attained(std::size_t j) const {
    return to_seconds(length(j) - left_[j]).count() * jobs_[j].gpus();
  }

  void arrive(std::size_t j) {
    if (!empty_.fits(jobs_[j].gpus())) return run_.never.push_back(j);
    left_[j] = length(j);
    live_.push_back(j);
  }

  /// When a job ends, or one that waits is due; only called where some job is there.
  SimTime next_look() const {
    SimTime at = SimTime::max();
    double least_waiting = kNobodyWaits;
    for (const std::size_t j : live_) {
      if (runs(j))
        at = std::min(at, now_ + left_[j]);
      else
        least_waiting = std::min(least_waiting, attained(j));
    }
    if (by_ == PreemptiveOrder::shortest_remaining || least_waiting == kNobodyWaits) return at;
    for (const std::size_t j : live_) {
      if (!runs(j)) continue;
      const Seconds until{(least_waiting - attained(j)) / jobs_[j].gpus()};
      at = std::min(at, now_ + to_clock(std::max(until, kLeastQuantum)));
    }
    return at;
  }

  void advance_to(SimTime at) {
    const SimDuration passed = at - now_;
    now_ = at;
    for (const std::size_t j : live_) {
      if (!runs(j)) continue;
      left_[j] -= passed;
      run_.gpu_seconds += to_seconds(passed).count() * jobs_[j].gpus();
      if (left_[j] > SimDuration{0}) continue;
      run_.jobs[j].end = now_;
      release(j);
    }
    std::erase_if(live_, [&](std::size_t j) { return run_.jobs[j].end.has_value(); });
  }

  void release(std::size_t j) {
    nodes_.give_back(held_[j]);
    options_.note(j, held_[j], since_[j], now_);
    held_[j].clear();
  }

  void decide() {
    const auto before = [&](std::size_t a, std::size_t b) {
      const double x = key(a), y = key(b);
      if (x != y) return x < y;
      if (runs(a) != runs(b)) return runs(a);
      return jobs_[a].submit != jobs_[b].submit ? jobs_[a].submit < jobs_[b].submit : a < b;
    };
    std::sort(live_.begin(), live_.end(), before);
    // Who runs by the order alone, on nodes that are all free.
    std::vector<std::size_t> wanted;
    std::vector<NodePart> taken;
    for (const std::size_t j : live_) {
      if (scratch_.free() == 0) break;
      if (!scratch_.fits(jobs_[j].gpus())) continue;
      const auto parts = scratch_.take(jobs_[j].gpus());
      taken.insert(taken.end(), parts.begin(), parts.end());
      wanted.push_back(j);
    }
    scratch_.give_back(taken);
    std::sort(wanted.begin(), wanted.end());
    for (const std::size_t j : live_)
      if (runs(j) && !std::binary_search(wanted.begin(), wanted.end(), j)) {
        release(j);
        ++run_.jobs[j].preemptions;
      }
    place(wanted);
  }

  double key(std::size_t j) const {
    return by_ == PreemptiveOrder::shortest_remaining ? to_seconds(left_[j]).count() : attained(j);
  }

  /// Those that run keep their GPUs; if the others do not fit between them, all move.
  void place(const std::vector<std::size_t>& wanted) {
    bool moved = false;
    for (std::size_t attempt = 0; attempt < 2; ++attempt) {
      bool all = true;
      for (const std::size_t j : live_) {
        if (runs(j) || !std::binary_search(wanted.begin(), wanted.end(), j)) continue;
        if (!nodes_.fits(jobs_[j].gpus())) {
          all = false;
          break;
        }
        held_[j] = nodes_.take(jobs_[j].gpus());
        since_[j] = now_;
        if (!run_.jobs[j].start) run_.jobs[j].start = now_;
      }
      if (all || moved) return;
      for (const std::size_t j : wanted)
        if (runs(j)) release(j);
      moved = true;
    }
  }

  std::span<const JobRequest> jobs_;
  PreemptiveOrder by_;
  const RunOptions& options_;
  QueueRun& run_;
  const FreeNodes empty_;
  FreeNodes nodes_;
  FreeNodes scratch_;                        // all free but within a decision
  std::vector<SimDuration> left_;            // by job
  std::vector<SimTime> since_;               // by job: it holds its GPUs
  std::vector<std::vector<NodePart>> held_;  // by job; empty: it does not run
  std::vector<std::size_t> live_;            // there, and not ended
  SimTime now_{};
};

}  // namespace

QueueRun run_preemptive(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                        PreemptiveOrder order, std::size_t first_measured, std::size_t measured,
                        const RunOptions& options) {
  QueueRun run = queue_of_jobs(jobs, first_measured, measured);
  Preemptive(jobs, groups, order, options, run).simulate();
  summarize(run, gpus_of(groups));
  return run;
}

}  // namespace reckon
