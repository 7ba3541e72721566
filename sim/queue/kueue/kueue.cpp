#include "sim/queue/kueue/kueue.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>

#include "sim/base/check.h"
#include "sim/queue/backfill/first_below.h"
#include "sim/queue/free_nodes.h"
#include "sim/queue/kueue/admission_checks.h"
#include "sim/queue/kueue/order.h"
#include "sim/queue/kueue/runnable.h"

namespace reckon {
namespace {

class KueueSimulation {
 public:
  KueueSimulation(const JobList& list, std::span<const NodeGroup> groups,
                  std::span<const std::string> pools, const KueueSpec& kueue,
                  const RunOptions& options, QueueRun& run)
      : list_(list),
        kueue_(kueue),
        options_(options),
        run_(run),
        quotas_(kueue, pools, resources_of(groups, pools.size())),
        topology_(kueue, groups, pools),
        checks_(kueue, pools, options.seed, options.replication),
        empty_(groups),
        nodes_(groups),
        jobs_(list.jobs.size()),
        cell_of_(),
        order_(quotas_.queues()) {
    for (const NodeGroup& group : groups)
      cell_of_.insert(cell_of_.end(), static_cast<std::size_t>(group.nodes), group.cell);
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      jobs_[j].queue = kueue_queue_of(list_, j, kueue_);
      RECKON_CHECK(jobs_[j].queue != kNoClusterQueue);
      order_[jobs_[j].queue].push_back(j);
    }
    for (std::vector<std::size_t>& jobs : order_) {
      std::sort(jobs.begin(), jobs.end(),
                [&](std::size_t a, std::size_t b) { return goes_first(a, b); });
      for (std::size_t k = 0; k < jobs.size(); ++k) jobs_[jobs[k]].place = k;
      pending_.emplace_back(jobs.size());
    }
  }

  void simulate() {
    for (const RunningJob& running : options_.running) go_on(running);
    std::vector<std::size_t> order(list_.jobs.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return list_.jobs[a].submit < list_.jobs[b].submit;
    });
    auto next = order.begin();
    while (next != order.end() || !ends_.empty() || !verdicts_.empty() || !returns_.empty()) {
      now_ = next != order.end() ? list_.jobs[*next].submit : SimTime::max();
      if (!ends_.empty()) now_ = std::min(now_, ends_.top().at);
      if (!verdicts_.empty()) now_ = std::min(now_, verdicts_.top().ending.at);
      if (!returns_.empty()) now_ = std::min(now_, returns_.top().at);
      while (!ends_.empty() && ends_.top().at <= now_) end_first();
      while (!verdicts_.empty() && verdicts_.top().ending.at <= now_) hear_first();
      for (; !returns_.empty() && returns_.top().at <= now_; returns_.pop())
        wait(returns_.top().job);
      for (; next != order.end() && list_.jobs[*next].submit <= now_; ++next) arrive(*next);
      admit_all();
      start_admitted();
      if (options_.until && run_.jobs[*options_.until].end) return;
    }
    std::sort(run_.never.begin(), run_.never.end());
  }

 private:
  struct Job {
    std::size_t queue = 0;
    SimDuration left{};
    std::size_t place = 0;       // in order_ of its queue
    SimTime started{};           // of the present attempt
    std::vector<NodePart> held;  // empty: it waits for nodes, or for quota
    std::size_t slot = 0;        // in admitted_, where it is
    int attempt = 0;
    bool evicted_now = false;
  };
  struct Ending {
    SimTime at{};
    std::size_t job = 0;
    int attempt = 0;  // another one: the job was evicted since
    friend bool operator>(const Ending& a, const Ending& b) {
      return std::tie(a.at, a.job, a.attempt) > std::tie(b.at, b.job, b.attempt);
    }
  };
  /// What the admission checks of an attempt say, and when.
  struct Verdict {
    Ending ending;
    AdmissionChecks::Verdict of;
    friend bool operator>(const Verdict& a, const Verdict& b) { return a.ending > b.ending; }
  };
  /// Of one look at the queues: where each stands.
  struct Look {
    std::vector<std::size_t> at;  // a place
    std::vector<bool> blocked;
    std::vector<std::int64_t> too_large;  // so many GPUs did not fit
  };

  const FixedTime& fixed(std::size_t j) const { return std::get<FixedTime>(list_.jobs[j].work); }
  int gpus(std::size_t j) const { return list_.jobs[j].gpus(); }

  /// Of one queue: by priority, then by age.
  bool goes_first(std::size_t a, std::size_t b) const {
    const JobRequest &x = list_.jobs[a], &y = list_.jobs[b];
    return std::tie(y.owner.priority, x.submit, a) < std::tie(x.owner.priority, y.submit, b);
  }

  void arrive(std::size_t j) {
    if (run_.jobs[j].start) return;  // it ran already
    if (!can_ever_run(quotas_, topology_, empty_, jobs_[j].queue, gpus(j), topology_of(list_, j),
                      options_.cells_of(j)))
      return run_.never.push_back(j);
    jobs_[j].left = fixed(j).time;
    wait(j);
  }

  void wait(std::size_t j) { pending_[jobs_[j].queue].set(jobs_[j].place, gpus(j)); }

  /// Admitted before the clock starts, on the nodes that it holds.
  void go_on(const RunningJob& running) {
    const std::size_t j = running.job;
    if (running.on.empty()) return;
    const int pool = cell_of_[static_cast<std::size_t>(running.on.front().node)];
    jobs_[j].left = fixed(j).time;
    jobs_[j].slot = admitted_.size();
    admitted_.push_back({j, jobs_[j].queue, gpus(j), list_.jobs[j].owner.priority,
                         list_.jobs[j].submit, now_, pool, false});
    if (quotas_.defines(jobs_[j].queue, pool)) quotas_.use(jobs_[j].queue, pool, gpus(j));
    nodes_.take_again(running.on);
    begin(j, running.on);
  }

  void begin(std::size_t j, std::vector<NodePart> parts) {
    Job& job = jobs_[j];
    job.held = std::move(parts);
    job.started = now_;
    if (!run_.jobs[j].start) run_.jobs[j].start = now_;
    ends_.push({now_ + options_.time(j, job.held, job.left), j, job.attempt});
  }

  void end_first() {
    const Ending ending = ends_.top();
    ends_.pop();
    if (ending.attempt != jobs_[ending.job].attempt) return;
    run_.jobs[ending.job].end = ending.at;
    leave(ending.job);
  }

  void hear_first() {
    const auto [ending, verdict] = verdicts_.top();
    verdicts_.pop();
    Job& job = jobs_[ending.job];
    if (ending.attempt != job.attempt) return;  // it was evicted since
    if (verdict.kind == AdmissionChecks::Verdict::Kind::ready)
      return without_nodes_.push_back(ending.job);
    leave(ending.job);
    ++job.attempt;
    if (verdict.kind == AdmissionChecks::Verdict::Kind::rejected)
      ++run_.rejected;
    else
      returns_.push({now_ + verdict.back_off, ending.job, job.attempt});
  }

  /// Gives back its nodes and its quota.
  void leave(std::size_t j) {
    Job& job = jobs_[j];
    KueueWorkload& w = admitted_[job.slot];
    RECKON_CHECK(w.job == j);
    if (quotas_.defines(w.queue, w.pool)) quotas_.use(w.queue, w.pool, -w.gpus);
    w = admitted_.back();
    jobs_[w.job].slot = job.slot;
    admitted_.pop_back();
    if (job.held.empty()) {
      std::erase(without_nodes_, j);
      return;
    }
    run_.gpu_seconds += to_seconds(now_ - job.started).count() * list_.jobs[j].whole_gpus();
    nodes_.give_back(job.held);
    options_.note(j, job.held, job.started, now_);
    job.held.clear();
  }

  void evict(std::size_t j) {
    Job& job = jobs_[j];
    if (!job.held.empty()) {
      const SimDuration done = fixed(j).time - job.left +
                               std::min(job.left, options_.work(j, job.held, now_ - job.started));
      job.left = fixed(j).time - kept_work(done, kueue_.checkpoint);
      ++run_.jobs[j].preemptions;
    }
    leave(j);
    ++job.attempt;
    job.evicted_now = true;
    evicted_.push_back(j);
    wait(j);
  }

  void admit_all() {
    Look look = new_look();
    while (true) {
      std::vector<KueueNomination> nominations;
      for (std::size_t q = 0; q < pending_.size(); ++q)
        if (auto n = nominate(q, look)) nominations.push_back(std::move(*n));
      if (nominations.empty()) break;
      if (kueue_.fair_sharing.empty()) sort_by_borrowing(nominations);
      bool evicts = false, changed = false;
      std::vector<bool> done(nominations.size(), false);
      for (std::size_t step = 0; step < nominations.size(); ++step) {
        const std::size_t next =
            kueue_.fair_sharing.empty() ? step : next_of_fair(nominations, done, quotas_);
        done[next] = true;
        const KueueNomination& n = nominations[next];
        // What the others of this round took may be missing now, and whom it evicts was chosen
        // before: then it is nominated again.
        if (changed && !n.targets.empty()) continue;
        for (const std::size_t target : n.targets) evict(target);
        evicts = evicts || !n.targets.empty();
        if (quotas_.available(n.workload.queue, n.workload.pool) < n.workload.gpus) continue;
        if (!admit(n.workload)) continue;
        changed = true;
      }
      RECKON_CHECK(changed);
      if (evicts) look = new_look();
    }
    for (const std::size_t j : evicted_) jobs_[j].evicted_now = false;
    evicted_.clear();
  }

  Look new_look() const {
    Look look;
    look.at.assign(pending_.size(), 0);
    look.blocked.assign(pending_.size(), false);
    look.too_large.assign(pending_.size(), FirstBelow::kEmpty);
    return look;
  }

  /// The first of the queue that gets a flavor, if it is not blocked.
  std::optional<KueueNomination> nominate(std::size_t q, Look& look) {
    const bool strict = kueue_.cluster_queues[q].strategy == QueueingStrategy::strict_fifo;
    while (!look.blocked[q]) {
      // Who comes later has no more rights: what was too large for the one before is for it.
      std::size_t& at = look.at[q];
      at = pending_[q].find(at, look.too_large[q]);
      if (at == FirstBelow::kNowhere) break;
      const std::size_t j = order_[q][at];
      const KueueWorkload w{j,
                            q,
                            gpus(j),
                            list_.jobs[j].owner.priority,
                            list_.jobs[j].submit,
                            now_,
                            KueueQuotas::kNoFlavor,
                            false};
      if (auto nomination = assign(w)) return nomination;
      if (topology_of(list_, j).level.empty() && options_.cells.empty())
        look.too_large[q] = gpus(j);
      look.blocked[q] = strict;
      ++at;
    }
    return std::nullopt;
  }

  std::optional<KueueNomination> assign(const KueueWorkload& w) {
    const ClusterQueueSpec& spec = kueue_.cluster_queues[w.queue];
    std::optional<KueueNomination> best;
    const auto rank = [](const KueueNomination& n) {
      return (n.targets.empty() ? 0 : 2) + (n.borrows ? 1 : 0);
    };
    for (const int pool : quotas_.flavors(w.queue)) {
      if ((cell_of_pool(pool) & options_.cells_of(w.job)) == 0) continue;
      KueueNomination n{w, quotas_.borrows(w.queue, pool, w.gpus), {}};
      n.workload.pool = pool;
      if (!fits_empty(quotas_, topology_, empty_, w.queue, pool, w.gpus, topology_of(list_, w.job)))
        continue;
      if (quotas_.available(w.queue, pool) < w.gpus) {
        const bool may = w.gpus <= quotas_.nominal(w.queue, pool) || !kueue_.fair_sharing.empty() ||
                         spec.preemption.borrow_within_cohort.policy != BorrowWithinPolicy::never;
        if (!may || jobs_[w.job].evicted_now) continue;
        n.targets =
            preemption_targets(w, pool, admitted_, spec.preemption, kueue_.fair_sharing, quotas_);
        if (n.targets.empty()) continue;
      }
      if (!has_place(n)) continue;
      const bool stops =
          (n.targets.empty() || spec.fungibility.when_can_preempt == WhenCan::may_stop_search) &&
          (!n.borrows || spec.fungibility.when_can_borrow == WhenCan::may_stop_search);
      if (!best || rank(n) < rank(*best)) best = std::move(n);
      if (stops) break;
    }
    return best;
  }

  /// Of a job that asks for a topology: whether its nodes are free, or will be without whom it
  /// evicts. The nodes of the others need not be free together yet.
  bool has_place(const KueueNomination& n) {
    const TopologyRequest request = topology_of(list_, n.workload.job);
    if (request.level.empty()) return true;
    for (const std::size_t target : n.targets) nodes_.give_back(jobs_[target].held);
    const bool fits =
        topology_.place(nodes_, n.workload.pool, n.workload.gpus, request).has_value();
    for (const std::size_t target : n.targets) nodes_.take_again(jobs_[target].held);
    return fits;
  }

  /// False: the nodes of a topology that it asks for were taken by another of this round.
  bool admit(const KueueWorkload& w) {
    const TopologyRequest request = topology_of(list_, w.job);
    std::optional<std::vector<NodePart>> parts;
    if (!request.level.empty()) {
      parts = topology_.place(nodes_, w.pool, w.gpus, request);
      if (!parts) return false;
    }
    quotas_.use(w.queue, w.pool, w.gpus);
    jobs_[w.job].slot = admitted_.size();
    admitted_.push_back(w);
    admitted_.back().stays = jobs_[w.job].attempt >= kMostEvictions;
    pending_[w.queue].clear(jobs_[w.job].place);
    if (parts) {
      nodes_.take_again(*parts);
      begin(w.job, std::move(*parts));
    } else if (const auto verdict = checks_.check(w.job, w.queue, w.pool, now_)) {
      verdicts_.push({{verdict->at, w.job, jobs_[w.job].attempt}, *verdict});
    } else {
      without_nodes_.push_back(w.job);
    }
    return true;
  }

  void start_admitted() {
    std::erase_if(without_nodes_, [&](std::size_t j) {
      const CellSet cells = cell_of_pool(admitted_[jobs_[j].slot].pool);
      if (!nodes_.fits(gpus(j), cells)) return false;
      begin(j, nodes_.take(gpus(j), cells));
      return true;
    });
  }

  const JobList& list_;
  const KueueSpec& kueue_;
  const RunOptions& options_;
  QueueRun& run_;
  KueueQuotas quotas_;
  const KueueTopology topology_;
  AdmissionChecks checks_;
  const FreeNodes empty_;
  FreeNodes nodes_;
  std::vector<Job> jobs_;
  std::vector<int> cell_of_;                     // by node
  std::vector<std::vector<std::size_t>> order_;  // by queue: its jobs, the first to go first
  std::vector<FirstBelow> pending_;              // by queue: GPUs of those that wait, by place
  std::vector<KueueWorkload> admitted_;          // in no order
  std::vector<std::size_t> without_nodes_;       // of those, that do not run yet
  std::vector<std::size_t> evicted_;             // at this time
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ends_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> returns_;  // after a back-off
  std::priority_queue<Verdict, std::vector<Verdict>, std::greater<>> verdicts_;
  SimTime now_{};
};

}  // namespace

QueueRun run_kueue(const JobList& list, std::span<const NodeGroup> groups,
                   std::span<const std::string> pools, const KueueSpec& kueue,
                   std::size_t first_measured, std::size_t measured, const RunOptions& options) {
  QueueRun run = queue_of_jobs(list.jobs, first_measured, measured);
  KueueSimulation(list, groups, pools, kueue, options, run).simulate();
  summarize(run, whole_gpus_of(groups));
  return run;
}

}  // namespace reckon
