#include <algorithm>

#include "sim/base/check.h"
#include "sim/cluster/life/state.h"
#include "sim/cluster/never.h"

// How a job is interrupted, what is left of its work, and how an elastic one changes its size.
namespace reckon {

bool Life::goes_on_without(const Node& node) const {
  const Job& job = jobs_[node.job];
  if (job.is_elastic() && node.joining) return true;
  if (job.phase == JobPhase::initializing) return false;
  const PoolShare& share = job.share(node.pool);
  if (job.is_elastic() && !node.member) return true;
  return share.beside || (!job.synchronous && !node.chief && !share.servers);
}

namespace {

/// The nodes that a job still has hold a copy of its state.
bool holds_a_copy(const Job& job) {
  int there = job.workers;
  for (const Holding& holding : job.holdings) there -= holding.workers_to_place;
  return there >= job.restart_rules.workers_of_a_copy;
}

}  // namespace

/// A node of the job is gone. Synchronous training stops; asynchronous training
/// goes on unless it was the chief's or a parameter server's; all training goes on without an
/// evaluator.
void Life::lose_node(Node& node, Interruption cause, NodeState next) {
  Job& job = jobs_[node.job];
  if (!job.active()) {  // the gang was not complete: nothing is interrupted
    let_go(node, next);
    // Two nodes at once, or one after the other before the job trains again.
    if (job.started && !job.done())
      take_back(job, job.kept == Kept::processes && job.keeps_state && holds_a_copy(job)
                         ? Loss::node
                         : Loss::nodes);
    return;
  }
  ++result_.interruptions[static_cast<std::size_t>(cause)];
  const bool goes_on = goes_on_without(node);
  const std::uint32_t index = cluster_.index_of(node);
  std::erase_if(job.evacuated, [&](const Evacuation& e) { return e.node == index; });
  bank(job);
  let_go(node, next);
  if (goes_on) {
    set_pace(job);
  } else {
    interrupt(job, Loss::node);
  }
}

/// Its workers start anew on a node that stays.
void Life::restart_workers(Node& node) {
  Job& job = jobs_[node.job];
  if (!node.joining) {
    if (!job.is_elastic()) job.shares.live -= node.workers;
    job.shares.joining += node.workers;
  }
  node.joining = true;
  ++node.use;
  schedule(now_ + job.start_up, EventKind::worker_joined, cluster_.index_of(node), node.use);
}

void Life::lose_process(Node& node) {
  Job& job = jobs_[node.job];
  if (!job.active()) return;  // it starts anyway
  ++result_.interruptions[static_cast<std::size_t>(Interruption::failure)];
  bank(job);
  if (goes_on_without(node)) {
    if (job.share(node.pool).beside || job.share(node.pool).servers) return;
    restart_workers(node);
    return set_pace(job);
  }
  if (job.keeps_processes() && std::ranges::count(job.new_nodes, cluster_.index_of(node)) == 0) {
    node.start_up = job.start_up;
    job.new_nodes.push_back(cluster_.index_of(node));
  }
  interrupt(job, Loss::process);
}

/// The work that nobody holds any more is to be done again; Job::kept says who has the rest.
void Life::take_back(Job& job, Loss loss) {
  Progress& progress = job.progress;
  // What a lost node held is on its peers again from the next save to them on.
  if (job.phase == JobPhase::initializing && job.kept == Kept::local_tier && loss == Loss::node)
    loss = Loss::nodes;
  const SimDuration unsaved = progress.done - progress.saved, before = progress.done;
  job.kept = kept_after(job.restart_rules.kind, job.keeps_state, job.local, loss);
  switch (job.kept) {
    case Kept::processes:
      go_on(progress, job.cycle,
            progress.done % std::max(progress.total / job.steps, SimDuration{1}));
      break;
    case Kept::local_tier:
      go_back_to_local(progress);
      break;
    case Kept::storage:
      job.time.work_is_lost();
      return go_back(progress);
  }
  if (unsaved.count() > 0)
    job.time.work_is_lost(double((before - progress.done).count()) / double(unsaved.count()));
}

/// From a notice to a complete checkpoint of the whole gang. Maintenance is announced long before:
/// the job itself chooses when it begins to save. A save that is under way needs nobody to be told.
SimDuration Life::time_to_emergency_save(const Job& job, const Node& node,
                                         Interruption cause) const {
  const SimDuration save = time_to_save(job.progress, job.cycle);
  if (cause != Interruption::preemption || is_saving(job.progress, job.cycle)) return save;
  NoticeRules rules = job.notice;
  rules.save = to_seconds(save);
  NoticeLuck luck;
  if (rules.step.count() > 0 || rules.writer_spread > 0) {
    RandomStream stream = stream_of(node, kNotice, node.lease);
    luck.step = stream.uniform();
    luck.writer = stream.uniform();
  }
  return save + clock_or_never(time_to_saved(rules, luck) - rules.save);
}

/// A node is about to go at `deadline`: if the program saves on a notice and a checkpoint can be
/// completed until then, it is made now and no work is lost; else training goes on to the end.
void Life::evacuate(Node& node, Interruption cause, SimTime deadline) {
  Job& job = jobs_[node.job];
  const Evacuation evacuation{cluster_.index_of(node), cause};
  if (job.phase == JobPhase::evacuating && !goes_on_without(node)) {
    const auto same = [&](const Evacuation& e) { return e.node == evacuation.node; };
    if (std::none_of(job.evacuated.begin(), job.evacuated.end(), same)) {
      job.evacuated.push_back(evacuation);
    }
  }
  if (job.phase != JobPhase::running || !job.cycle.on() || goes_on_without(node)) return;
  if (job.keeps_processes() && job.keeps_state) return;  // those that stay hold all of the work
  const bool reclaim = cause == Interruption::preemption;
  if (reclaim) ++job.outcome.notices;
  if (job.notice.policy == OnNotice::none) return;
  bank(job);
  const SimTime saved = now_ + time_to_emergency_save(job, node, cause);
  if (saved > deadline) return;
  if (reclaim) ++job.outcome.notices_in_time;
  set_phase(job, JobPhase::evacuating);
  job.evacuated.push_back(evacuation);
  schedule_job(job, saved, EventKind::emergency_saved);
}

void Life::on_emergency_saved(Job& job) {
  bank(job);
  job.progress.saved = job.progress.saved_local = job.progress.done;
  job.time.work_is_safe();
  ++job.emergency_saves;
  if (job.growing && job.evacuated.empty()) return regroup(job, Kept::storage);
  interrupt(job, std::nullopt);
}

/// The job stops. It is tried again with all its nodes; only where the rules
/// count disruptions does that take a backoff and one of the tries.
void Life::interrupt(Job& job, std::optional<Loss> loss) {
  bank(job);
  job.growing = false;
  if (job.phase == JobPhase::initializing)  // what has begun to start goes on
    for (const std::uint32_t n : job.new_nodes) {
      SimDuration& start_up = cluster_.nodes[n].start_up;
      start_up = std::max(SimDuration{0}, start_up - (now_ - job.phase_began));
    }
  if (loss) {
    take_back(job, *loss);
  } else {
    job.kept = Kept::storage;
    go_back(job.progress);
  }
  const bool retry_counts = rented_.retry.counts_disruptions;
  set_phase(job, retry_counts ? JobPhase::backoff : JobPhase::queued);
  bool together = false;  // maintenance of all nodes at once is one interruption
  for (const Evacuation& e : job.evacuated) {
    const bool again = together && e.cause == Interruption::maintenance;
    if (!again) ++result_.interruptions[static_cast<std::size_t>(e.cause)];
    together = together || (rented_.maintenance.grouped && e.cause == Interruption::maintenance);
    let_go(cluster_.nodes[e.node],
           e.cause == Interruption::preemption ? NodeState::leaving : NodeState::drained);
  }
  job.evacuated.clear();
  if (job.shares.joining > 0 && !job.is_elastic()) {  // they start again with the others
    for (Node& node : cluster_.nodes) {
      if (!node.held || node.job != job.index) continue;
      if (node.joining && node.cold) job.cold_nodes.push_back(cluster_.index_of(node));
      node.joining = false;
    }
  }
  job.shares = {.joining = job.is_elastic() ? job.shares.joining : 0};
  if (!job.keeps_processes()) leave_fallbacks(job);
  job.queue_cause = Badput::waiting;
  ++job.interruptions;
  if (is_hopeless(job)) {  // told when the event that is under way is over
    set_phase(job, JobPhase::backoff);
    return schedule_job(job, now_, EventKind::backoff_over);
  }
  if (!retry_counts) return;
  ++job.failures;
  const SimDuration delay = retry_delay(rented_.retry, job.failures);
  const bool last = job.failures > rented_.retry.backoff_limit;
  schedule_job(job, last ? now_ : now_ + delay, EventKind::backoff_over);
}

/// Those who are ready train on together; who is new gets the state from `kept`.
void Life::regroup(Job& job, Kept kept) {
  job.growing = false;
  job.kept = kept;
  ++job.outcome.growths;
  set_phase(job, JobPhase::initializing);
  if (kept == Kept::storage)
    go_back(job.progress);
  else
    go_on(job.progress, job.cycle, SimDuration{0});
  job.shares = {.joining = job.shares.joining};
  job.init_time = job.regroup;
  const SimDuration restore = kept == Kept::processes ? job.peer_restore : job.restore;
  schedule_job(job, now_ + job.init_time + restore, EventKind::initialized);
}

void Life::on_tried_smaller(Job& job) { job.tried_smaller = true; }

void Life::on_grow(Job& job) {
  if (job.keeps_state) return regroup(job, Kept::processes);
  job.growing = true;
  set_phase(job, JobPhase::evacuating);
  schedule_job(job, now_ + time_to_save(job.progress, job.cycle), EventKind::emergency_saved);
}

}  // namespace reckon
