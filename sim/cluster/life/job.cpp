#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/cluster/life/state.h"
#include "sim/cluster/never.h"

// What happens to the job, from its submission to its end.
namespace reckon {

/// A span of the job; of several jobs the one with its index.
void Life::record(const Job& job, const char* name, std::string_view category, SimTime begin,
                  SimTime end) {
  recorder_.span(name, category, -1, jobs_.size() == 1 ? -1 : int(job.index), begin, end);
}

void Life::bank_elapsed(Job& job) {
  const SimTime from = std::exchange(job.banked, now_);
  const SimDuration elapsed = now_ - from;
  if (recorder_.on()) record_phase(job, from);
  const int all = job.accelerators();
  switch (job.phase) {
    case JobPhase::unsubmitted:
    case JobPhase::done:
      break;
    case JobPhase::queued:
      job.time.add(job.queue_cause, all, elapsed);
      break;
    case JobPhase::backoff:
      job.time.add(Badput::waiting, all, elapsed);
      break;
    case JobPhase::initializing: {
      const SimTime restore_at = restore_begins(job, from);
      job.time.add(Badput::initialization, all, restore_at - from);
      job.time.add(Badput::checkpoint_restore, all, now_ - restore_at);
      break;
    }
    case JobPhase::running:
      bank_training(job, elapsed);
      break;
    case JobPhase::evacuating:
      job.time.add(Badput::checkpoint_save, job.accelerators_of(job.shares.live), elapsed);
      bank_absent_workers(job, elapsed);
      break;
    case JobPhase::hung:
      job.time.add(Badput::lost_work, all, elapsed);
      break;
  }
}

/// Within `from` and now.
SimTime Life::restore_begins(const Job& job, SimTime from) const {
  return std::clamp(job.phase_began + job.init_time, from, now_);
}

/// What the job did since `from`, before that is banked.
void Life::record_phase(const Job& job, SimTime from) {
  switch (job.phase) {
    case JobPhase::unsubmitted:
    case JobPhase::done:
      break;
    case JobPhase::queued:
      record(job, "queued", to_text(job.queue_cause), from, now_);
      break;
    case JobPhase::backoff:
      record(job, "backoff", to_text(Badput::waiting), from, now_);
      break;
    case JobPhase::initializing: {
      const SimTime restore_at = restore_begins(job, from);
      record(job, "initialize", to_text(Badput::initialization), from, restore_at);
      record(job, "restore", to_text(Badput::checkpoint_restore), restore_at, now_);
      break;
    }
    case JobPhase::running:
      if (job.shares.live > 0) record_training(job, from);
      break;
    case JobPhase::evacuating:
      record(job, "emergency save", to_text(Badput::checkpoint_save), from, now_);
      break;
    case JobPhase::hung:
      record(job, "hangs", to_text(Badput::lost_work), from, now_);
      break;
  }
}

void Life::bank_training(Job& job, SimDuration elapsed) {
  bank_absent_workers(job, elapsed);
  if (job.shares.live == 0) return;
  if (job.is_elastic() && job.shares.live < job.workers)
    job.outcome.smaller += accelerator_time(job.accelerators(), elapsed);
  const Stretch stretch = advance(job.progress, job.cycle, elapsed, job.pace());
  job.time.add_training(job.accelerators_of(job.shares.live), stretch);
}

/// Asynchronous training goes on without some workers; their accelerators' time
/// is accounted by what they wait for.
void Life::bank_absent_workers(Job& job, SimDuration elapsed) {
  const WorkerShares& shares = job.shares;
  job.time.add(Badput::initialization, job.accelerators_of(shares.joining), elapsed);
  job.time.add(Badput::provisioning, job.accelerators_of(shares.provisioning), elapsed);
  job.time.add(Badput::waiting, job.accelerators_of(shares.waiting), elapsed);
}

/// The spans of training and of saves between `from` and now.
void Life::record_training(const Job& job, SimTime from) {
  constexpr std::int64_t kMostSpans = 20'000;  // beyond that a picture shows nothing
  const CheckpointCycle& cycle = job.cycle;
  if (!cycle.on() || cycle.has_tiers() || (now_ - from) / cycle.length() > kMostSpans) {
    record(job, "training", "goodput", from, now_);
    return;
  }
  SimDuration phase = job.progress.phase;
  while (from < now_) {
    const bool saving = phase >= cycle.interval;
    const SimTime end = std::min(now_, from + ((saving ? cycle.length() : cycle.interval) - phase));
    if (saving) {
      record(job, "save", to_text(Badput::checkpoint_save), from, end);
    } else {
      record(job, "training", "goodput", from, end);
    }
    phase = (phase + (end - from)) % cycle.length();
    from = end;
  }
}

void Life::set_phase(Job& job, JobPhase phase) {
  bank(job);
  const bool was_active = job.active();
  if (was_active) job.active_time = job.active_until(now_);
  job.phase = phase;
  job.phase_began = now_;
  job.active_since = now_;
  queue_.cancel_solo(job.index);
}

/// All of the gang is placed. The image is pulled where it is not there yet;
/// every node waits for the slowest.
void Life::start(Job& job) {
  if (!job.started) job.outcome.queued = now_ - job.submit;
  set_phase(job, JobPhase::initializing);
  job.init_time = start_up_of(job);
  job.started = true;
  if (job.kept == Kept::storage && job.progress.saved.count() > 0) ++job.restores;
  schedule_job(job, now_ + job.init_time + restore_of(job), EventKind::initialized);
}

/// All processes start, or those alone that are new, and the others wait for them.
SimDuration Life::start_up_of(const Job& job) const {
  if (!job.keeps_processes() || !job.started)
    return (job.cold_nodes.empty() ? SimDuration{0} : job.image_pull) + job.start_up;
  SimDuration slowest{};
  for (const std::uint32_t n : job.new_nodes)
    slowest = std::max(slowest, cluster_.nodes[n].start_up);
  return slowest + job.regroup;
}

SimDuration Life::restore_of(const Job& job) const {
  switch (job.kept) {
    case Kept::processes:
      return job.new_nodes.empty() || job.progress.done.count() == 0 ? SimDuration{0}
                                                                     : job.peer_restore;
    case Kept::local_tier:
      return job.progress.done.count() > 0 ? job.local_restore : SimDuration{0};
    case Kept::storage:
      break;
  }
  return job.progress.saved.count() > 0 ? job.restore : SimDuration{0};
}

void Life::on_initialized(Job& job) {
  set_phase(job, JobPhase::running);
  for (const std::uint32_t n : job.cold_nodes) cluster_.nodes[n].cold = false;
  job.cold_nodes.clear();
  job.new_nodes.clear();
  if (!job.is_elastic()) {
    job.shares = {.live = job.workers};
    return set_pace(job);
  }
  for (Node& node : cluster_.nodes)
    if (node.held && node.job == job.index) node.member = !node.joining;
  job.shares.live = job.usable_workers();
  set_pace(job);
}

/// The pace is constant from now until something changes: when will the job be
/// done?
void Life::set_pace(Job& job) {
  if (job.phase != JobPhase::running) return;
  queue_.cancel_solo(job.index);
  if (job.shares.live == 0) return;
  const SimTime finish = now_ + time_to_finish(job.progress, job.cycle, job.pace());
  if (job.is_elastic() && job.usable_workers() > job.shares.live) {
    // Who holds the state hands it over at once; else the next save to the storage does.
    if (job.keeps_state) return schedule_job(job, now_, EventKind::grow);
    const SimTime save =
        job.cycle.on() ? now_ + time_to_next_save(job.progress, job.cycle) : finish;
    if (save < finish) return schedule_job(job, save, EventKind::grow);
  }
  schedule_job(job, finish, EventKind::finish);
}

/// What those who do not train wait for: nodes that are coming, or something
/// else (a scan, a quota of the pool, a backoff, maintenance, a repair). Of a job that is queued,
/// or goes on with fewer.
void Life::update_shares(Job& job) {
  if (job.phase == JobPhase::queued) {
    Badput cause = Badput::waiting;
    for (std::size_t p = 0; p < cluster_.pools.size(); ++p) {
      if (cluster_.pools[p].provisioning > 0 && job.lacks(p) > 0) cause = Badput::provisioning;
    }
    if (cause == job.queue_cause) return;
    bank(job);
    job.queue_cause = cause;
  } else if (job.phase == JobPhase::running || job.phase == JobPhase::evacuating) {
    WorkerShares shares = job.shares;
    shares.provisioning = shares.waiting = 0;
    for (std::size_t p = 0; p < cluster_.pools.size(); ++p) {
      const int to_place = job.holdings[p].workers_to_place;
      int nodes = cluster_.pools[p].provisioning;
      for (const std::uint32_t other : cluster_.pools[p].fallbacks)
        nodes += cluster_.pools[other].provisioning;
      const int coming = std::min(to_place, nodes * job.share(p).workers_per_node);
      shares.provisioning += coming;
      shares.waiting += to_place - coming;
    }
    if (job.is_elastic())  // ready and not yet taken in, or of a copy that is not whole
      shares.waiting = job.workers - shares.live - shares.joining - shares.provisioning;
    if (shares == job.shares) return;
    bank(job);
    job.shares = shares;
  }
}

/// What saved a share f of the work in a time t takes t / f for all of it. After so many
/// interruptions that is known to a few percent (without checkpoints: that no gap between two of
/// them is long enough), and twice the horizon is beyond doubt: what would follow until then are
/// more of the same events.
bool Life::is_hopeless(const Job& job) const {
  constexpr int kSaving = 1000, kNeverSaving = 10'000;
  if (job.interruptions < (job.cycle.on() ? kSaving : kNeverSaving)) return false;
  const double share = double(job.progress.done.count()) / double(job.progress.total.count());
  const Seconds tried = to_seconds(now_ - job.submit - job.outcome.queued);
  return tried > 2 * share * options_.horizon;
}

void Life::on_backoff_over(Job& job) {
  if (is_hopeless(job))
    return give_up(job, fmt::format("interrupted {} times: at this rate not finished within the "
                                    "horizon of {}",
                                    job.interruptions, format_duration(options_.horizon)));
  if (job.failures > rented_.retry.backoff_limit) {
    return give_up(job, "interrupted more often than the job's backoff limit of " +
                            std::to_string(rented_.retry.backoff_limit) + " allows");
  }
  set_phase(job, JobPhase::queued);
}

void Life::on_finish(Job& job) {
  bank(job);
  const SimDuration left = job.progress.total - job.progress.done;
  RECKON_CHECK(left < SimDuration{16});  // asynchronous pace rounds
  job.progress.done = job.progress.saved = job.progress.total;
  job.time.work_is_safe();
  job.outcome.finished = true;
  job.outcome.steps_done = job.steps;
  close_job(job);
}

void Life::give_up(Job& job, std::string why) {
  bank(job);
  job.time.work_is_lost();
  job.outcome.failure = std::move(why);
  const Progress& progress = job.progress;
  if (progress.total.count() > 0) {
    const double share = double(progress.saved.count()) / double(progress.total.count());
    job.outcome.steps_done = static_cast<std::int64_t>(double(job.steps) * share);
  }
  close_job(job);
}

void Life::close_job(Job& job) {
  set_phase(job, JobPhase::done);
  job.outcome.finish = now_;
  std::erase(wanting_, job.index);
  --unfinished_;
  if (all_done()) all_done_at_ = now_;
  if (all_done())
    delete_nodes();
  else
    leave_nodes(job);
}

}  // namespace reckon
