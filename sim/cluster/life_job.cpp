#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/cluster/life_state.h"

// What happens to the job, from its submission to its end.
namespace reckon {

void Life::bank() {
  const SimTime from = job_.banked;
  const SimDuration elapsed = now_ - from;
  if (elapsed.count() == 0 || !job_.wants_nodes()) return;
  job_.banked = now_;
  const int all = job_.accelerators();
  switch (job_.phase) {
    case JobPhase::unsubmitted:
    case JobPhase::done:
      break;
    case JobPhase::queued:
      time_.add(job_.queue_cause, all, elapsed);
      recorder_.span("queued", to_text(job_.queue_cause), -1, -1, from, now_);
      break;
    case JobPhase::backoff:
      time_.add(Badput::waiting, all, elapsed);
      recorder_.span("backoff", to_text(Badput::waiting), -1, -1, from, now_);
      break;
    case JobPhase::initializing: {
      const SimTime restore_at = std::clamp(job_.phase_began + job_.init_time, from, now_);
      time_.add(Badput::initialization, all, restore_at - from);
      time_.add(Badput::checkpoint_restore, all, now_ - restore_at);
      recorder_.span("initialize", to_text(Badput::initialization), -1, -1, from, restore_at);
      recorder_.span("restore", to_text(Badput::checkpoint_restore), -1, -1, restore_at, now_);
      break;
    }
    case JobPhase::running:
      bank_training(from, elapsed);
      break;
    case JobPhase::evacuating:
      time_.add(Badput::checkpoint_save, job_.accelerators_of(job_.shares.live), elapsed);
      recorder_.span("emergency save", to_text(Badput::checkpoint_save), -1, -1, from, now_);
      bank_absent_workers(elapsed);
      break;
  }
}

void Life::bank_training(SimTime from, SimDuration elapsed) {
  bank_absent_workers(elapsed);
  if (job_.shares.live == 0) return;
  record_training(from);
  const Stretch stretch = advance(job_.progress, job_.cycle, elapsed, job_.pace());
  time_.add_training(job_.accelerators_of(job_.shares.live), stretch);
}

/// Asynchronous training goes on without some workers; their accelerators' time is accounted by
/// what they wait for.
void Life::bank_absent_workers(SimDuration elapsed) {
  const WorkerShares& shares = job_.shares;
  time_.add(Badput::initialization, job_.accelerators_of(shares.joining), elapsed);
  time_.add(Badput::provisioning, job_.accelerators_of(shares.provisioning), elapsed);
  time_.add(Badput::waiting, job_.accelerators_of(shares.waiting), elapsed);
}

/// The spans of training and of saves between `from` and now.
void Life::record_training(SimTime from) {
  if (!recorder_.on()) return;
  constexpr std::int64_t kMostSpans = 20'000;  // beyond that a picture shows nothing
  const CheckpointCycle& cycle = job_.cycle;
  if (!cycle.on() || (now_ - from) / cycle.length() > kMostSpans) {
    recorder_.span("training", "goodput", -1, -1, from, now_);
    return;
  }
  SimDuration phase = job_.progress.phase;
  while (from < now_) {
    const bool saving = phase >= cycle.interval;
    const SimTime end = std::min(now_, from + ((saving ? cycle.length() : cycle.interval) - phase));
    if (saving) {
      recorder_.span("save", to_text(Badput::checkpoint_save), -1, -1, from, end);
    } else {
      recorder_.span("training", "goodput", -1, -1, from, end);
    }
    phase = (phase + (end - from)) % cycle.length();
    from = end;
  }
}

void Life::set_phase(JobPhase phase) {
  bank();
  const bool was_active = job_.active();
  if (was_active) job_.active_time = job_.active_until(now_);
  job_.phase = phase;
  job_.phase_began = now_;
  job_.active_since = now_;
  queue_.cancel_solo();
}

/// All of the gang is placed. The image is pulled where it is not there yet; every node waits for
/// the slowest.
void Life::start() {
  set_phase(JobPhase::initializing);
  job_.init_time = (job_.cold_nodes.empty() ? SimDuration{0} : job_.image_pull) + job_.start_up;
  const SimDuration restore = job_.progress.saved.count() > 0 ? job_.restore : SimDuration{0};
  schedule_job(now_ + job_.init_time + restore, EventKind::initialized);
}

void Life::on_initialized() {
  set_phase(JobPhase::running);
  for (const std::uint32_t n : job_.cold_nodes) cluster_.nodes[n].cold = false;
  job_.cold_nodes.clear();
  job_.shares = {.live = job_.workers};
  set_pace();
}

/// The pace is constant from now until something changes: when will the job be done?
void Life::set_pace() {
  if (job_.phase != JobPhase::running) return;
  queue_.cancel_solo();
  if (job_.shares.live == 0) return;
  schedule_job(now_ + time_to_finish(job_.progress, job_.cycle, job_.pace()), EventKind::finish);
}

/// What those who do not train wait for: nodes that are coming, or something else (a scan, a quota
/// of the pool, a backoff, maintenance, a repair).
void Life::update_shares() {
  if (job_.phase == JobPhase::queued) {
    Badput cause = Badput::waiting;
    for (const Pool& pool : cluster_.pools) {
      if (pool.held < pool.share.nodes && pool.provisioning > 0) cause = Badput::provisioning;
    }
    if (cause == job_.queue_cause) return;
    bank();
    job_.queue_cause = cause;
  } else if (!job_.synchronous &&
             (job_.phase == JobPhase::running || job_.phase == JobPhase::evacuating)) {
    WorkerShares shares = job_.shares;
    shares.provisioning = shares.waiting = 0;
    for (const Pool& pool : cluster_.pools) {
      const int coming =
          std::min(pool.workers_to_place, pool.provisioning * pool.share.workers_per_node);
      shares.provisioning += coming;
      shares.waiting += pool.workers_to_place - coming;
    }
    if (shares == job_.shares) return;
    bank();
    job_.shares = shares;
  }
}

bool Life::goes_on_without(const Node& node) const {
  return !job_.synchronous && job_.phase != JobPhase::initializing && !node.chief &&
         !cluster_.pools[node.pool].share.servers;
}

/// A node of the job is gone. Synchronous training stops; asynchronous training goes on unless it
/// was the chief's or a parameter server's.
void Life::lose_node(Node& node, Interruption cause, NodeState next) {
  if (!job_.active())
    return let_go(node, next);  // the gang was not complete: nothing is interrupted
  ++result_.interruptions[static_cast<std::size_t>(cause)];
  const bool goes_on = goes_on_without(node);
  const std::uint32_t index = cluster_.index_of(node);
  std::erase_if(job_.evacuated, [&](const Evacuation& e) { return e.node == index; });
  bank();
  let_go(node, next);
  if (goes_on) {
    set_pace();
  } else {
    interrupt(false);
  }
}

/// A node is about to go at `deadline`: if a checkpoint can be completed until then, it is made now
/// and no work is lost; else training goes on to the end.
void Life::evacuate(Node& node, Interruption cause, SimTime deadline) {
  const Evacuation evacuation{cluster_.index_of(node), cause};
  if (job_.phase == JobPhase::evacuating && !goes_on_without(node)) {
    const auto same = [&](const Evacuation& e) { return e.node == evacuation.node; };
    if (std::none_of(job_.evacuated.begin(), job_.evacuated.end(), same)) {
      job_.evacuated.push_back(evacuation);
    }
  }
  if (job_.phase != JobPhase::running || !job_.cycle.on() || goes_on_without(node)) return;
  bank();
  const SimTime saved = now_ + time_to_save(job_.progress, job_.cycle);
  if (saved > deadline) return;
  set_phase(JobPhase::evacuating);
  job_.evacuated.push_back(evacuation);
  schedule_job(saved, EventKind::emergency_saved);
}

void Life::on_emergency_saved() {
  bank();
  job_.progress.saved = job_.progress.done;
  time_.work_is_safe();
  interrupt(true);
}

/// The job stops. It is tried again with all its nodes; only where the rules count disruptions does
/// that take a backoff and one of the tries.
void Life::interrupt(bool work_is_safe) {
  bank();
  if (!work_is_safe) time_.work_is_lost();
  job_.progress.done = job_.progress.saved;
  job_.progress.phase = SimDuration{0};
  const bool retry_counts = plan_.retry.counts_disruptions;
  set_phase(retry_counts ? JobPhase::backoff : JobPhase::queued);
  for (const Evacuation& e : job_.evacuated) {
    ++result_.interruptions[static_cast<std::size_t>(e.cause)];
    let_go(cluster_.nodes[e.node],
           e.cause == Interruption::preemption ? NodeState::leaving : NodeState::drained);
  }
  job_.evacuated.clear();
  if (job_.shares.joining > 0) {  // they start again with the others
    for (Node& node : cluster_.nodes) {
      if (node.joining && node.cold) job_.cold_nodes.push_back(cluster_.index_of(node));
      node.joining = false;
    }
  }
  job_.shares = {};
  job_.queue_cause = Badput::waiting;
  if (!retry_counts) return;
  ++job_.failures;
  const SimDuration delay = retry_delay(plan_.retry, job_.failures);
  const bool last = job_.failures > plan_.retry.backoff_limit;
  schedule_job(last ? now_ : now_ + delay, EventKind::backoff_over);
}

void Life::on_backoff_over() {
  if (job_.failures > plan_.retry.backoff_limit) {
    return give_up("interrupted more often than the job's backoff limit of " +
                   std::to_string(plan_.retry.backoff_limit) + " allows");
  }
  set_phase(JobPhase::queued);
}

void Life::on_finish() {
  bank();
  const SimDuration left = job_.progress.total - job_.progress.done;
  RECKON_CHECK(left < SimDuration{16});  // asynchronous pace rounds
  job_.progress.done = job_.progress.saved = job_.progress.total;
  time_.work_is_safe();
  result_.finished = true;
  result_.steps_done = pace_.steps;
  close_job();
}

void Life::give_up(std::string why) {
  bank();
  time_.work_is_lost();
  result_.failure = std::move(why);
  const Progress& progress = job_.progress;
  if (progress.total.count() > 0) {
    const double share = double(progress.saved.count()) / double(progress.total.count());
    result_.steps_done = static_cast<std::int64_t>(double(pace_.steps) * share);
  }
  close_job();
}

void Life::close_job() {
  set_phase(JobPhase::done);
  result_.finish = now_;
  delete_nodes_of_the_job();
}

}  // namespace reckon
