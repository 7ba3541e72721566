#include "sim/queue/backfill/backfill.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "sim/queue/backfill/overflow.h"
#include "sim/queue/backfill/reservations.h"
#include "sim/queue/backfill/running_jobs.h"
#include "sim/queue/backfill/waiting_jobs.h"
#include "sim/queue/free_nodes.h"

namespace reckon {
namespace {

class Backfill {
 public:
  Backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups, QueueRules& rules,
           const RunOptions& options, QueueRun& run)
      : jobs_(jobs),
        rules_(rules),
        options_(options),
        run_(run),
        empty_(groups),
        nodes_(groups, rules.spreads()),
        running_(jobs.size()),
        waiting_(jobs, rules) {}

  void simulate() {
    for (const RunningJob& running : options_.running) go_on(running);
    auto next = waiting_.in_order().begin();
    const auto end = waiting_.in_order().end();
    const auto skip_running = [&] {
      while (next != end && run_.jobs[*next].start) ++next;
    };
    for (skip_running();
         next != end || !ends_.empty() || !returns_.empty() || due_ != due_from_.size();
         skip_running()) {
      now_ = SimTime::max();
      if (due_ != due_from_.size()) now_ = due_from_[due_].first;
      if (!ends_.empty()) now_ = std::min(now_, ends_.top().first);
      if (next != end) now_ = std::min(now_, jobs_[*next].submit);
      if (!returns_.empty()) now_ = std::min(now_, returns_.top().first);
      const auto& leaving = running_.leaving();
      if (!leaving.empty()) now_ = std::min(now_, leaving.begin()->first);
      if (const auto at = rules_.recalculates(now_)) {
        waiting_.recalculate(*at);
        settled_ = false;
      }
      while (!ends_.empty() && ends_.top().first <= now_) end_first();
      while (!leaving.empty() && leaving.begin()->first <= now_) preempt(leaving.begin()->second);
      if (!claimants_.empty()) start_claimants();
      for (; next != end && jobs_[*next].submit <= now_; ++next) arrive(*next);
      while (!returns_.empty() && returns_.top().first <= now_) come_back();
      settled() ? look_at_arrivals() : look_at_queue();
      arrived_.clear();
      if (options_.overflow != nullptr) send_overdue();
      if (options_.until && stopped_at(*options_.until)) return;
    }
    std::sort(run_.never.begin(), run_.never.end());
  }

 private:
  using Timed = RunningJobs::Timed;
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
  using Candidate = WaitingJobs::Candidate;
  const FixedTime& fixed(std::size_t job) const { return std::get<FixedTime>(jobs_[job].work); }
  SimTime end_at_limit(std::size_t job) const { return now_ + longest_time(jobs_[job]); }

  void arrive(std::size_t j) {
    if (run_.jobs[j].start) return;  // it ran already
    const bool own = empty_.fits(jobs_[j].gpus(), rules_.nodes_of(j));
    const bool overflows = options_.overflow != nullptr && jobs_[j].devices_of_gpu == 1 &&
                           options_.overflow->can_hold(jobs_[j].gpus());
    if ((!own && !overflows) || rules_.never(j)) return run_.never.push_back(j);
    if (own) {
      waiting_.add(j);
      arrived_.push_back(j);
    }
    if (!overflows) return;
    if (own)
      due_from_.emplace_back(jobs_[j].submit + options_.overflow->wait(), j);
    else
      overdue_.push_back(j);  // its own nodes never have room
  }

  /// Jobs that waited too long go to the cloud as far as it has room, the oldest first.
  void send_overdue() {
    for (; due_ < due_from_.size() && due_from_[due_].first <= now_; ++due_)
      overdue_.push_back(due_from_[due_].second);
    std::erase_if(overdue_, [&](std::size_t j) {
      if (run_.jobs[j].start) return true;
      const auto stay = options_.overflow->run(j, jobs_[j].gpus(), fixed(j).time, now_);
      if (!stay) return false;
      if (empty_.fits(jobs_[j].gpus(), rules_.nodes_of(j))) waiting_.take_out(j);
      settled_ = false;
      run_.jobs[j].start = stay->start;
      run_.jobs[j].end = stay->end;
      run_.jobs[j].preemptions = stay->reclaims;
      run_.jobs[j].overflowed = true;
      std::erase(claimants_, j);
      returns_.push({stay->end, kNobody});  // whose nodes are then there for the next
      return true;
    });
  }

  bool stopped_at(std::size_t j) const {
    if (run_.jobs[j].start)
      options_.note(j, running_.held(j), *run_.jobs[j].start, *run_.jobs[j].end);
    return run_.jobs[j].start.has_value();
  }

  void go_on(const RunningJob& running) {
    const std::size_t j = running.job;
    if (running.on.empty() && !nodes_.fits(jobs_[j].gpus(), rules_.nodes_of(j))) return;
    if (running.on.empty()) return start(j);
    nodes_.take_again(running.on);
    begin(j, running.on);
  }

  void start(std::size_t j) { begin(j, nodes_.take(jobs_[j].gpus(), rules_.nodes_of(j))); }

  void begin(std::size_t j, std::vector<NodePart> on) {
    settled_ = false;
    running_.start(j, std::move(on), now_);
    const SimDuration left = options_.time(j, running_.held(j), left_of(j));
    if (!run_.jobs[j].start) run_.jobs[j].start = now_;
    std::erase(claimants_, j);
    run_.jobs[j].end = now_ + left;
    run_.gpu_seconds += to_seconds(left).count() * jobs_[j].whole_gpus();
    ends_.push({now_ + left, j});
    running_.expect(j, fixed(j).limit
                           ? end_at_limit(j)
                           : now_ + options_.time(j, running_.held(j), longest_time(jobs_[j])));
    rules_.started(j, now_);
  }

  void end_first() {
    const auto [at, j] = ends_.top();
    ends_.pop();
    if (running_.held(j).empty() || run_.jobs[j].end != at) return;  // it went before
    leave(j, at);
  }

  void leave(std::size_t j, SimTime at) {
    settled_ = false;
    const std::vector<NodePart> held = running_.end(j);
    nodes_.give_back(held);
    options_.note(j, held, running_.since(j), at);
    rules_.ended(j, at);
  }

  /// Work of a job that is not done.
  SimDuration left_of(std::size_t j) const {
    const auto again = left_.find(j);
    return again == left_.end() ? fixed(j).time : again->second;
  }

  /// It waits again, with what it keeps of its work.
  void preempt(std::size_t j) {
    const SimDuration cut = *run_.jobs[j].end - now_;
    run_.gpu_seconds -= to_seconds(cut).count() * jobs_[j].whole_gpus();
    const SimDuration done =
        std::max(SimDuration{0}, fixed(j).time - options_.work(j, running_.held(j), cut));
    left_[j] = fixed(j).time - rules_.kept(done);
    run_.jobs[j].end.reset();
    ++run_.jobs[j].preemptions;
    leave(j, now_);
    if (rules_.cancels(j))
      ++run_.cancelled;
    else
      returns_.push({now_ + rules_.requeue_delay(), j});
  }

  /// At once, or when its grace is over.
  void choose_to_go(std::size_t j, std::size_t claimant) {
    const SimTime at = now_ + rules_.grace(j);
    if (at == now_) return preempt(j);
    if (std::ranges::find(claimants_, claimant) == claimants_.end()) claimants_.push_back(claimant);
    running_.leave_at(j, at);
  }

  /// Those for whom others had a grace go before all that wait: else who left would come back to
  /// what it left, and be preempted again.
  void start_claimants() {
    const std::vector<std::size_t> claimants = claimants_;
    for (const std::size_t j : claimants) {
      if (nodes_.fits(jobs_[j].gpus(), rules_.nodes_of(j)) && rules_.may_start(j)) {
        waiting_.take_out(j);
        start(j);
      } else if (running_.leaving().empty()) {
        std::erase(claimants_, j);
      }
    }
  }

  /// A job that was preempted, or the time at which one may be.
  void come_back() {
    const std::size_t j = returns_.top().second;
    returns_.pop();
    settled_ = false;
    if (j != kNobody) waiting_.add(j);
  }

  /// Running jobs go, so that it fits; false: it does not yet, for nobody goes or some have a
  /// grace.
  bool make_room(std::size_t j, CellSet cells) {
    const int gpus = jobs_[j].gpus();
    const Victims victims = victims_for(j, gpus, cells, now_, running_, rules_, nodes_);
    for (const std::size_t victim : victims.jobs) choose_to_go(victim, j);
    // Where it waits for somebody's exemption to end, the queue is looked at then.
    if (!victims.suffice && victims.soonest_exempt_until != SimTime::max())
      returns_.push({victims.soonest_exempt_until, kNobody});
    return nodes_.fits(gpus, cells);
  }

  /// In order of priority, but what one job of a lane found out goes for those behind it.
  void look_at_queue() {
    if (waiting_.empty() || (nodes_.free() == 0 && !rules_.preempts())) return;
    reservations_.clear();
    settled_ = !rules_.preempts() && !waiting_.bounded();
    const auto later = [](const Candidate& a, const Candidate& b) { return b < a; };
    waiting_.begin_look(heads_);
    std::make_heap(heads_.begin(), heads_.end(), later);
    while (!heads_.empty() && (nodes_.free() > 0 || rules_.preempts())) {
      std::pop_heap(heads_.begin(), heads_.end(), later);
      Candidate candidate = heads_.back();
      heads_.pop_back();
      if (!try_lane(candidate)) continue;
      heads_.push_back(candidate);
      std::push_heap(heads_.begin(), heads_.end(), later);
    }
    settled_ = settled_ && heads_.empty();
  }

  /// Whether the last look's refusals and reservations still hold. Who starts behind a reservation
  /// may change the nodes that it gets, and a job that is over its limit moves it.
  bool settled() const {
    const auto& by_end = running_.by_end();
    return settled_ && (by_end.empty() || by_end.begin()->first >= now_);
  }

  /// Nothing else happened since the last look, so nobody else can start, unless one of them comes
  /// before who has a reservation or needs one.
  void look_at_arrivals() {
    if (nodes_.free() == 0) return;
    heads_.clear();
    for (const std::size_t j : arrived_) heads_.push_back(waiting_.candidate(j));
    std::sort(heads_.begin(), heads_.end());
    for (const Candidate& c : heads_) {
      if (!rules_.may_start(c.job)) continue;
      const WaitingJobs::Lane& lane = waiting_.lane(c.lane);
      const bool fits = nodes_.fits(lane.gpus, lane.cells);
      const bool behind = reservations_.bind(lane.cells);
      if (!reservations_.precede(c) || (!behind && !fits && rules_.reserves()))
        return look_at_queue();
      if (!fits) continue;
      if (!behind)
        start(c.job);
      else if (!start_behind(c.job, lane.cells))
        continue;
      waiting_.remove(c);
    }
  }

  /// The first of the lane that is left; true: `c` is now the one behind it that comes into
  /// question.
  bool try_lane(Candidate& c) {
    const WaitingJobs::Lane& lane = waiting_.lane(c.lane);
    if (!rules_.may_start(c.job)) return false;
    const bool behind = reservations_.bind(lane.cells);
    if (!nodes_.fits(lane.gpus, lane.cells) &&
        (behind || !rules_.preempts() || !make_room(c.job, lane.cells))) {
      if (!behind && rules_.reserves()) reserve(c, lane.cells);
      return false;
    }
    if (!behind) {
      start(c.job);
      waiting_.remove(c);
      return waiting_.next(c, FirstBelow::kEmpty);
    }
    if (const auto after = reservations_.refused_after(lane); !after || !outlives(c.job, *after)) {
      if (start_behind(c.job, lane.cells))
        waiting_.remove(c);
      else
        reservations_.refuse(lane, end_at_limit(c.job));
    }
    const auto after = reservations_.refused_after(lane);
    return waiting_.next(c, after ? (*after - now_).count() + 1 : FirstBelow::kEmpty);
  }

  bool outlives(std::size_t j, SimTime at) const { return end_at_limit(j) > at; }

  /// Lets running jobs end at their limits until the job fits, notes what it leaves of the nodes
  /// that it gets, and takes it all back. Where nobody is behind it, it would bind nobody.
  void reserve(const Candidate& head, CellSet cells) {
    if (heads_.empty()) {
      settled_ = false;
      return;
    }
    const int gpus = jobs_[head.job].gpus();
    std::vector<std::size_t> ended;
    Reservation reserved{head, now_, cells, {}};
    for (const auto& [at, j] : running_.by_end()) {
      if (nodes_.fits(gpus, cells)) break;
      reserved.at = std::max(now_, at);
      nodes_.give_back(running_.held(j));
      ended.push_back(j);
    }
    const std::vector<NodePart> gets = nodes_.take(gpus, cells);
    for (const NodePart& part : gets)
      reserved.spare.push_back({part.node, nodes_.free_of(part.node)});
    nodes_.give_back(gets);
    for (const std::size_t j : ended) nodes_.take_again(running_.held(j));
    reservations_.add(std::move(reserved));
  }

  /// It fits, and jobs before it have reservations; false: it would take what they keep.
  bool start_behind(std::size_t j, CellSet cells) {
    const std::vector<NodePart> kept = reservations_.kept_from(cells, end_at_limit(j), nodes_);
    nodes_.take_again(kept);
    const bool fits = nodes_.fits(jobs_[j].gpus(), cells);
    if (fits) {
      start(j);
      reservations_.took(running_.held(j), end_at_limit(j));
    }
    nodes_.give_back(kept);
    return fits;
  }

  std::span<const JobRequest> jobs_;
  QueueRules& rules_;
  const RunOptions& options_;
  QueueRun& run_;
  const FreeNodes empty_;
  FreeNodes nodes_;
  RunningJobs running_;
  std::map<std::size_t, SimDuration> left_;  // of jobs that were preempted
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> returns_;
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> ends_;
  std::vector<std::size_t> claimants_;  // jobs that wait for those that were chosen to go
  WaitingJobs waiting_;
  std::vector<Timed> due_from_;       // with an overflow: when each job has waited too long
  std::size_t due_ = 0;               // of them, the first that has not yet
  std::vector<std::size_t> overdue_;  // jobs that have, the oldest first
  SimTime now_{};
  std::vector<std::size_t> arrived_;  // since the last look
  bool settled_ = false;  // since the last look, nothing but arrivals, which started nobody
  // Of the last look:
  std::vector<Candidate> heads_;  // a heap: the first of each lane that comes into question
  Reservations reservations_;
};

}  // namespace

QueueRun run_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                      QueueRules& rules, std::size_t first_measured, std::size_t measured,
                      const RunOptions& options) {
  QueueRun run = queue_of_jobs(jobs, first_measured, measured);
  rules.keep_to(options.cells);
  Backfill(jobs, groups, rules, options, run).simulate();
  summarize(run, whole_gpus_of(groups));
  return run;
}

}  // namespace reckon
