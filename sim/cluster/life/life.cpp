#include "sim/cluster/life/life.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/limits.h"
#include "sim/base/unit_text.h"
#include "sim/cluster/life/state.h"
#include "sim/cluster/never.h"

namespace reckon {

LifeResult simulate_life(const PlannedCluster& cluster, std::span<const JobRequest> jobs,
                         const LifeOptions& options) {
  Life life(cluster, jobs, options);
  life.begin();
  Event event;
  while (life.next(event)) {
    switch (event.kind) {
      case EventKind::submit:
        life.on_submit(life.job(event));
        break;
      case EventKind::ready:
        life.on_ready(life.node(event));
        break;
      case EventKind::provision_timeout:
        life.on_provision_timeout(life.node(event));
        break;
      case EventKind::initialized:
        life.on_initialized(life.job(event));
        break;
      case EventKind::worker_joined:
        life.on_worker_joined(life.node(event));
        break;

      case EventKind::reclaim_notice:
        life.on_reclaim_notice(life.node(event));
        break;
      case EventKind::block_ends:
        life.on_block_ends(life.node(event));
        break;
      case EventKind::taken:
        life.on_taken(life.node(event));
        break;
      case EventKind::maintenance_notice:
        life.on_maintenance_notice(life.node(event));
        break;
      case EventKind::maintenance_begin:
        life.on_maintenance_begin(life.node(event));
        break;
      case EventKind::failed:
        life.on_failed(life.node(event));
        break;
      case EventKind::hang_found:
        life.on_hang_found(life.node(event));
        break;
      case EventKind::maintenance_end:
      case EventKind::repaired:
        life.on_back(life.node(event));
        break;
      case EventKind::emergency_saved:
        life.on_emergency_saved(life.job(event));
        break;
      case EventKind::backoff_over:
        life.on_backoff_over(life.job(event));
        break;

      case EventKind::scan:
        life.on_scan();
        break;
      case EventKind::unneeded:
        life.on_unneeded(life.node(event));
        break;
      case EventKind::disrupt:
        life.on_disrupt();
        break;
      case EventKind::expired:
        life.on_expired(life.node(event));
        break;
      case EventKind::drain_over:
        life.on_drain_over(life.node(event));
        break;
      case EventKind::finish:
        life.on_finish(life.job(event));
        break;
      case EventKind::tried_smaller:
        life.on_tried_smaller(life.job(event));
        break;
      case EventKind::grow:
        life.on_grow(life.job(event));
        break;
      case EventKind::horizon:
        life.on_horizon();
        break;
    }
    life.place_pods();
    life.wake_autoscaler();
  }
  return life.end();
}

namespace {

/// A minute of work. 65,536 spot nodes of 8 h have a tenth of it in a month.
constexpr std::uint64_t kMostEvents = 200'000'000;

struct Submits {
  SimTime first, last;
};

Submits submits_of(std::span<const JobRequest> requests) {
  RECKON_CHECK(!requests.empty());
  const auto [first, last] = std::ranges::minmax_element(requests, {}, &JobRequest::submit);
  return {first->submit, last->submit};
}

}  // namespace

Life::Life(const PlannedCluster& rented, std::span<const JobRequest> requests,
           const LifeOptions& options)
    : rented_(rented),
      options_(options),
      reclaim_(rented.reclaim.law),
      reclaim_notice_(clock_or_never(rented.reclaim.notice)),
      maintenance_notice_(clock_or_never(rented.maintenance.notice)),
      maintenance_time_(clock_or_never(rented.maintenance.duration.value)),
      repair_time_(clock_or_never(rented.failures.repair.value)),
      hang_detection_(clock_or_never(rented.failures.hang_detection.value)),
      maintenance_mean_(rented.maintenance.every.value),
      submit_(submits_of(requests).first),
      horizon_(submits_of(requests).last + to_clock(options.horizon)),
      job_based_(rented.service.nodes_of_job),
      queue_(requests.size()),
      cluster_(rented, options),
      autoscaler_(make_autoscaler(rented, options)),
      unfinished_(requests.size()),
      recorder_(options.record) {
  RECKON_CHECK(requests.size() == 1 || !job_based_);
  RECKON_CHECK(submit_ < horizon_ && submit_ >= SimTime{});
  RECKON_CHECK(!rented.maintenance.on || maintenance_mean_.count() > 0);
  jobs_.reserve(requests.size());
  for (std::uint32_t k = 0; k < requests.size(); ++k) {
    jobs_.emplace_back(rented, k, requests[k], options.factors);
    const CheckpointCycle& cycle = jobs_[k].cycle;
    if (cycle.on() && jobs_[k].notice.policy == OnNotice::save) {
      any_saves_ = true;  // an older copy may still be being written
      longest_save_ = std::max(longest_save_, cycle.save + 2 * cycle.write);
    }
    any_spares_ = any_spares_ || jobs_[k].restart_rules.kind == RestartKind::warm_spare;
    order_.push_back(k);
  }
  std::stable_sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return jobs_[a].submit < jobs_[b].submit;
  });
  result_.digest = 14695981039346656037u;
}

// A cluster's nodes are requested when it is created, at time 0; a job service's when the job is
// submitted.
void Life::begin() {
  schedule(horizon_, EventKind::horizon);
  for (const std::uint32_t k : order_) schedule(jobs_[k].submit, EventKind::submit, k);
  for (Pool& pool : cluster_.pools) {
    const auto nodes = static_cast<std::uint32_t>(pool.plan->nodes_initial);
    for (std::uint32_t s = 0; s < nodes && !job_based_; ++s) request_node(pool, s, false);
  }
  wake_autoscaler();
}

bool Life::next(Event& event) {
  while (!(all_done() && open_leases_ == 0) && queue_.take(event)) {
    if (is_stale(event)) continue;
    now_ = event.at;
    if (++result_.events > kMostEvents)
      throw TooMuchWork(fmt::format("a replication has more than {} events: nodes go about as fast "
                                    "as they come, and no job gets on",
                                    kMostEvents),
                        "fewer nodes, a shorter training, or nodes that stay longer");
    for (const std::uint64_t word : {static_cast<std::uint64_t>(now_.time_since_epoch().count()),
                                     std::uint64_t(event.kind) << 32 | event.entity}) {
      result_.digest = (result_.digest ^ word) * 1099511628211u;  // FNV-1a, a word at a time
      result_.digest ^= result_.digest >> 32;
    }
    return true;
  }
  return false;
}

bool Life::is_stale(const Event& event) const {
  switch (event.kind) {
    case EventKind::submit:
    case EventKind::initialized:
    case EventKind::emergency_saved:
    case EventKind::backoff_over:
    case EventKind::finish:
    case EventKind::tried_smaller:
    case EventKind::grow:
      return false;
    case EventKind::horizon:
      return all_done();
    case EventKind::scan:
      return event.at != scan_planned_;
    case EventKind::disrupt:
      return event.at != disruption_planned_;
    case EventKind::expired:
    case EventKind::ready:
    case EventKind::provision_timeout:
    case EventKind::reclaim_notice:
    case EventKind::block_ends:
    case EventKind::taken:
      return event.stamp != cluster_.nodes[event.entity].lease;
    case EventKind::maintenance_notice:
    case EventKind::maintenance_begin:
    case EventKind::maintenance_end:
    case EventKind::failed:
    case EventKind::hang_found:
    case EventKind::repaired:
      return event.stamp != cluster_.nodes[event.entity].up;
    case EventKind::worker_joined:
    case EventKind::unneeded:
    case EventKind::drain_over:
      return event.stamp != cluster_.nodes[event.entity].use;
  }
  return true;
}

// What would happen behind the horizon never does, as long as a job is not done
// by then.
void Life::schedule(SimTime at, EventKind kind, std::uint32_t entity, std::uint32_t stamp) {
  if (at <= horizon_ || all_done()) queue_.push(at, kind, entity, stamp);
}

/// What the job does next, if nothing happens before; a change of its phase
/// takes it back.
void Life::schedule_job(const Job& job, SimTime at, EventKind kind) {
  if (at <= horizon_) queue_.push_solo(at, kind, job.index);
}

bool Life::any_wants_nodes() const { return !wanting_.empty(); }

void Life::on_submit(Job& job) {
  wanting_.push_back(job.index);
  job.banked = now_;
  set_phase(job, JobPhase::queued);
  if (!job.placement.impossible.empty()) return give_up(job, job.placement.impossible);
  for (const Pool& pool : cluster_.pools)
    if (is_over(pool) && job.lacks(std::size_t(&pool - cluster_.pools.data())) > 0)
      return give_up(job, reservation_is_over(pool));
  if (job.is_elastic())
    schedule_job(job, now_ + clock_or_never(rented_.autoscaler.max_node_provision_time),
                 EventKind::tried_smaller);
  for (Pool& pool : cluster_.pools) {
    const auto nodes = static_cast<std::uint32_t>(pool.plan->nodes_initial);
    for (std::uint32_t s = 0; s < nodes && job_based_; ++s) request_node(pool, s, false);
  }
}

void Life::on_horizon() {
  for (const std::uint32_t k : order_) {
    if (jobs_[k].done()) continue;
    give_up(jobs_[k], fmt::format("not finished within the horizon of {}",
                                  format_duration(options_.horizon)));
  }
  for (Node& node : cluster_.nodes) {
    if (node.state != NodeState::none) end_lease(node, false);
  }
}

/// Ready nodes take the pods of the jobs, the earliest first; when the last of
/// a gang is placed, that job starts.
void Life::place_pods() {
  if (any_draining_) drop_drained();
  for (const std::uint32_t p : cluster_.by_preference) {
    Pool& pool = cluster_.pools[p];
    if (!pool.free.empty() && takes_pods(pool)) place_pods_on(p, pool);
    if (!pool.freed.empty()) plan_deletions(pool);
  }
  for (const std::uint32_t k : wanting_) {
    Job& job = jobs_[k];
    if (job.phase == JobPhase::queued && job.can_start()) start(job);
    if (job.phase == JobPhase::queued || job.goes_on_with_fewer()) update_shares(job);
  }
}

void Life::place_pods_on(std::uint32_t p, Pool& pool) {
  for (const std::uint32_t k : wanting_) {
    if (pool.free.empty()) return;
    Job& job = jobs_[k];
    while (!pool.free.empty() && job.lacks(p) > 0)
      hold(job, cluster_.nodes[pool.first_node + pool.free.first()]);
  }
}

/// Nodes that are left without pods are deleted by the autoscaler in due time.
void Life::plan_deletions(Pool& pool) {
  std::sort(pool.freed.begin(), pool.freed.end());
  for (const std::uint32_t slot : pool.freed) {
    Node& node = cluster_.nodes[pool.first_node + slot];
    if (!pool.autoscaled || node.state != NodeState::ready || node.held || node.deletion_planned)
      continue;
    const SimTime at = autoscaler_->deletes_at(*this, node);
    if (at == SimTime::max() && !all_done()) continue;
    node.deletion_planned = true;
    schedule(at == SimTime::max() ? now_ : at, EventKind::unneeded, cluster_.index_of(node),
             node.use);
  }
  pool.freed.clear();
}

LifeResult Life::end() {
  RECKON_CHECK(all_done() && open_leases_ == 0);
  const SimTime created = job_based_ ? submit_ : SimTime{};
  for (const Pool& pool : cluster_.pools)
    if (const auto& held = pool.plan->reservation)
      cost_.add(CostPart::idle, charge_unused(*held, pool.reserved_time));
  cost_.add(CostPart::management, charge(rented_.billing.management, now_ - created));
  result_.finished = true;
  for (Job& job : jobs_) {
    const SimDuration time = job.outcome.finish - job.submit;
    job.outcome.total = accelerator_time(job.accelerators(), time);
    const AcceleratorTime work =
        job.time.close(job.input_share, job.straggler_share, job.outcome.total, result_);
    cost_.add(CostPart::network, egress_of(job, work));
    const double gigabytes = job.checkpoint_size.v / 1e9;
    if (job.cycle.on() && gigabytes > 0) {
      cost_.add(CostPart::storage, charge(scaled(rented_.storage_per_gb, gigabytes), time));
    }
    result_.finish = std::max(result_.finish, job.outcome.finish);
    result_.steps_done += job.outcome.steps_done;
    if (!job.outcome.finished && result_.finished) result_.failure = job.outcome.failure;
    result_.finished = result_.finished && job.outcome.finished;
    result_.jobs.push_back(std::move(job.outcome));
  }
  cost_.close(result_);
  for (const Pool& pool : cluster_.pools) {
    result_.node_time.push_back(pool.node_time);
    result_.reserved_time.push_back(pool.reserved_time);
    result_.outlived.push_back(pool.outlived);
  }
  result_.timeline = recorder_.take();
  return std::move(result_);
}

}  // namespace reckon
