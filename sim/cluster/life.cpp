#include "sim/cluster/life.h"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/cluster/life_state.h"

namespace reckon {

LifeResult simulate_life(const Plan& plan, const JobPace& pace, const LifeOptions& options) {
  Life life(plan, pace, options);
  life.begin();
  Event event;
  while (life.next(event)) {
    switch (event.kind) {
      case EventKind::submit:
        life.on_submit();
        break;
      case EventKind::ready:
        life.on_ready(life.node(event));
        break;
      case EventKind::provision_timeout:
        life.on_provision_timeout(life.node(event));
        break;
      case EventKind::initialized:
        life.on_initialized();
        break;
      case EventKind::worker_joined:
        life.on_worker_joined(life.node(event));
        break;

      case EventKind::reclaim_notice:
        life.on_reclaim_notice(life.node(event));
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
      case EventKind::maintenance_end:
      case EventKind::repaired:
        life.on_back(life.node(event));
        break;
      case EventKind::emergency_saved:
        life.on_emergency_saved();
        break;
      case EventKind::backoff_over:
        life.on_backoff_over();
        break;

      case EventKind::scan:
        life.on_scan();
        break;
      case EventKind::unneeded:
        life.on_unneeded(life.node(event));
        break;
      case EventKind::finish:
        life.on_finish();
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

Life::Life(const Plan& plan, const JobPace& pace, const LifeOptions& options)
    : plan_(plan),
      pace_(pace),
      options_(options),
      placement_(place_gang(plan, plan.jobs.front())),
      autoscaler_(plan.autoscaler),
      reclaim_(plan.reclaim.law),
      reclaim_notice_(to_clock(plan.reclaim.notice)),
      maintenance_mean_(to_clock(plan.maintenance.every.value)),
      maintenance_notice_(to_clock(plan.maintenance.notice)),
      maintenance_time_(to_clock(plan.maintenance.duration.value)),
      repair_time_(to_clock(plan.failures.repair.value)),
      submit_(to_clock(plan.jobs.front().submit)),
      horizon_(submit_ + to_clock(options.horizon)),
      job_based_(has_job_based_nodes(plan.service)),
      cluster_(plan, placement_, options),
      job_(plan, pace, options.factors),
      recorder_(options.record) {
  RECKON_CHECK(plan.jobs.size() == 1);
  RECKON_CHECK(submit_ < horizon_ && submit_ >= SimTime{});
  RECKON_CHECK(!plan.maintenance.on || maintenance_mean_.count() > 0);
  result_.digest = 14695981039346656037u;
}

// A cluster's nodes are requested when it is created, at time 0; a job service's when the job is
// submitted.
void Life::begin() {
  schedule(horizon_, EventKind::horizon);
  schedule(submit_, EventKind::submit);
  for (Pool& pool : cluster_.pools) {
    const auto nodes = static_cast<std::uint32_t>(pool.plan->nodes_initial);
    for (std::uint32_t s = 0; s < nodes && !job_based_; ++s) request_node(pool, s, false);
  }
  wake_autoscaler();
}

bool Life::next(Event& event) {
  while (!(job_.done() && open_leases_ == 0) && queue_.take(event)) {
    if (is_stale(event)) continue;
    now_ = event.at;
    ++result_.events;
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
      return false;
    case EventKind::horizon:
      return job_.done();
    case EventKind::scan:
      return event.at != scan_planned_;
    case EventKind::ready:
    case EventKind::provision_timeout:
    case EventKind::reclaim_notice:
    case EventKind::taken:
      return event.stamp != cluster_.nodes[event.entity].lease;
    case EventKind::maintenance_notice:
    case EventKind::maintenance_begin:
    case EventKind::maintenance_end:
    case EventKind::failed:
    case EventKind::repaired:
      return event.stamp != cluster_.nodes[event.entity].up;
    case EventKind::worker_joined:
    case EventKind::unneeded:
      return event.stamp != cluster_.nodes[event.entity].use;
  }
  return true;
}

// What would happen behind the horizon never does, as long as the job is not done by then.
void Life::schedule(SimTime at, EventKind kind, std::uint32_t entity, std::uint32_t stamp) {
  if (at <= horizon_ || job_.done()) queue_.push(at, kind, entity, stamp);
}

/// What the job does next, if nothing happens before; a change of its phase takes it back.
void Life::schedule_job(SimTime at, EventKind kind) {
  if (at <= horizon_) queue_.push_solo(at, kind);
}

void Life::on_submit() {
  job_.banked = now_;
  set_phase(JobPhase::queued);
  if (!placement_.impossible.empty()) return give_up(placement_.impossible);
  for (Pool& pool : cluster_.pools) {
    const auto nodes = static_cast<std::uint32_t>(pool.plan->nodes_initial);
    for (std::uint32_t s = 0; s < nodes && job_based_; ++s) request_node(pool, s, false);
  }
}

void Life::on_horizon() {
  give_up(fmt::format("not finished within the horizon of {}", format_duration(options_.horizon)));
  for (Node& node : cluster_.nodes) {
    if (node.state != NodeState::none) end_lease(node, false);
  }
}

/// Ready nodes take the job's pods; when the last of the gang is placed, the job starts.
void Life::place_pods() {
  if (!job_.wants_nodes()) {
    for (Pool& pool : cluster_.pools) plan_deletions(pool);
    return;
  }
  bool all_placed = true;
  for (Pool& pool : cluster_.pools) {
    while (pool.held < pool.share.nodes && !pool.free.empty()) {
      hold(cluster_.nodes[pool.first_node + pool.free.first()]);
    }
    all_placed = all_placed && pool.held == pool.share.nodes;
    plan_deletions(pool);
  }
  if (job_.phase == JobPhase::queued && all_placed) start();
  update_shares();
}

/// Nodes that are left without pods are deleted by the autoscaler in due time.
void Life::plan_deletions(Pool& pool) {
  if (!pool.autoscaled || pool.free.empty()) return;
  const auto slots = static_cast<std::uint32_t>(cluster_.slots(pool));
  for (std::uint32_t s = 0; s < slots; ++s) {
    Node& node = cluster_.nodes[pool.first_node + s];
    if (node.state != NodeState::ready || node.held || node.deletion_planned) continue;
    node.deletion_planned = true;
    schedule(autoscaler_.scale_down_at(node.free_since, last_scale_up_), EventKind::unneeded,
             cluster_.index_of(node), node.use);
  }
}

/// Pods that no node can take make the next scan find something to do.
void Life::wake_autoscaler() {
  if (!job_.wants_nodes()) return;
  SimTime at = SimTime::max();
  for (const Pool& pool : cluster_.pools) {
    if (!pool.autoscaled || pool.missing() <= 0) continue;
    if (pool.size(cluster_.slots(pool)) >= pool.plan->nodes_max) continue;
    const SimTime earliest = std::max({now_, last_scan_ + SimDuration{1}, pool.backoff.until()});
    at = std::min(at, autoscaler_.scan_at_or_after(earliest));
  }
  if (at == SimTime::max() || at >= scan_planned_) return;
  scan_planned_ = at;
  schedule(at, EventKind::scan);
}

void Life::on_scan() {
  scan_planned_ = SimTime::max();
  last_scan_ = now_;
  if (!job_.wants_nodes()) return;
  for (Pool& pool : cluster_.pools) {
    if (!pool.autoscaled || pool.backoff.blocks(now_)) continue;
    const int nodes =
        std::min({pool.missing(), pool.plan->nodes_max - pool.size(cluster_.slots(pool)),
                  plan_.autoscaler.max_nodes_per_scale_up});
    if (nodes <= 0) continue;
    last_scale_up_ = now_;
    for (int k = 0; k < nodes; ++k) request_node(pool, pool.empty.first(), true);
  }
}

LifeResult Life::end() {
  RECKON_CHECK(job_.done() && open_leases_ == 0);
  const SimDuration time = result_.finish - submit_;
  time_.close(job_.input_share, accelerator_time(job_.accelerators(), time), result_);
  const SimTime created = job_based_ ? submit_ : SimTime{};
  cost_.add(CostPart::management, charge(plan_.billing.management, now_ - created));
  const double gigabytes = pace_.checkpoint_size.v / 1e9;
  if (job_.cycle.on() && gigabytes > 0) {
    const HourlyRate rate{std::llrint(double(plan_.storage_per_gb.nano_usd_per_hour) * gigabytes)};
    cost_.add(CostPart::storage, charge(rate, time));
  }
  cost_.close(result_);
  for (const Pool& pool : cluster_.pools) result_.node_time.push_back(pool.node_time);
  result_.timeline = recorder_.take();
  result_.factors = options_.factors;
  return std::move(result_);
}

}  // namespace reckon
