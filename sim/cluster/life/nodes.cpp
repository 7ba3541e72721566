#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/cluster/life/state.h"
#include "sim/cluster/never.h"

// What happens to a node, from the request to the end of its lease.
namespace reckon {
namespace {

bool is_returning(NodeState s) {
  return s == NodeState::drained || s == NodeState::away || s == NodeState::repairing;
}

const char* name_of(NodeState s, bool held) {
  switch (s) {
    case NodeState::none:
      return "none";
    case NodeState::provisioning:
      return "provisioning";
    case NodeState::ready:
      return held ? "job" : "idle";
    case NodeState::leaving:
      return "leaving";
    case NodeState::drained:
      return "drained";
    case NodeState::away:
      return "maintenance";
    case NodeState::repairing:
      return "repair";
  }
  return "";
}

}  // namespace

void Life::record_span(const Node& node) {
  if (node.state == NodeState::none) return;
  recorder_.span(name_of(node.state, node.held), "node", int(node.pool), int(node.slot),
                 node.state_since, now_);
}

void Life::bank_standby(Node& node) {
  const SimTime from = std::max(node.free_since, submit_), to = std::min(now_, all_done_at_);
  if (to > from) node.standby += to - from;
}

void Life::set_state(Node& node, NodeState state) {
  Pool& pool = cluster_.pool_of(node);
  RECKON_CHECK(!node.held);
  stop_standing_by(node);
  record_state(node);
  if (node.state == NodeState::provisioning) --pool.provisioning;
  if (is_returning(node.state)) --pool.returning;
  if (node.state == NodeState::none) pool.empty.erase(node.slot);
  if (node.state == NodeState::ready) pool.free.erase(node.slot);
  node.state = state;
  node.state_since = now_;
  ++node.use;
  if (state == NodeState::provisioning) ++pool.provisioning;
  if (is_returning(state)) ++pool.returning;
  if (state == NodeState::none) pool.empty.insert(node.slot);
  if (state == NodeState::ready) {
    pool.free.insert(node.slot);
    node.free_since = now_;
    node.deletion_planned = false;
    pool.freed.push_back(node.slot);
  }
}

void Life::request_node(Pool& pool, std::uint32_t slot, bool by_autoscaler) {
  Node& node = cluster_.nodes[pool.first_node + slot];
  RECKON_CHECK(node.state == NodeState::none);
  set_state(node, NodeState::provisioning);
  ++open_leases_;
  ++node.lease;
  node.was_ready = false;
  node.cold = true;
  node.draining = node.replaced = false;
  node.replaces.reset();
  node.away = node.busy = node.standby = SimDuration{0};
  SimTime given = cluster_.given_from(pool, now_);
  const auto& reservation = pool.plan->reservation;
  const bool reserved = reservation && int(slot) < reservation->nodes;
  const bool waits = reserved && reservation->kind != ReservationKind::commitment;
  if (waits) given = std::max(given, SimTime{} + to_clock(reservation->from));
  given = std::max(given, capacity_at(node, pool));
  node.request = pool.requests;
  node.requested = given;  // what is not there is not billed
  const SimTime ready = given + delay_of(node, pool);
  // Nobody gives up on a machine that is promised for a day.
  const SimTime timeout = autoscaler_->gives_up_at(pool, waits ? given : now_);
  const std::uint32_t index = cluster_.index_of(node);
  if (by_autoscaler && timeout < ready) {
    schedule(timeout, EventKind::provision_timeout, index, node.lease);
  } else {
    schedule(ready, EventKind::ready, index, node.lease);
  }
}

// The age at which the provider takes the node back counts from here.
void Life::on_ready(Node& node) {
  Pool& pool = cluster_.pool_of(node);
  node.was_ready = true;
  const auto& run = pool.plan->max_run_duration;
  node.run_ends = run ? now_ + clock_or_never(*run) : SimTime::max();
  const SimTime block_ends = block_end(node, pool);
  node.lease_ends = std::min({reclaim_time(node, pool), node.run_ends, block_ends});
  come_up(node);
  autoscaler_->node_came(pool);
  if (pool.plan->node_pool) {
    const SimTime expires = autoscaler_->expires_at(node, now_);
    if (expires <= node.lease_ends && expires <= horizon_)
      schedule(expires, EventKind::expired, cluster_.index_of(node), node.lease);
  }
  if (node.replaces) replaced_by(node);
  if (node.lease_ends > horizon_) return;
  node.goes_at = node.lease_ends;
  if (node.goes_at == block_ends)  // known long before: the job trains on until a save just fits
    return schedule(std::max(now_, node.goes_at - longest_save_), EventKind::block_ends,
                    cluster_.index_of(node), node.lease);
  schedule(std::max(now_, node.goes_at - reclaim_notice_), EventKind::reclaim_notice,
           cluster_.index_of(node), node.lease);
}

SimTime Life::reclaim_time(Node& node, const Pool& pool) {
  if (!pool.reclaimable || reclaim_.never()) return SimTime::max();
  if (!reclaim_.from_trace()) return now_ + reclaim_.draw(node.reclaim);
  const auto& traces = rented_.reclaim.trace;
  if (traces.empty()) return SimTime::max();
  // The trace's slots are those of all spot pools, in order.
  return next_in_trace(traces[(pool.trace_offset + node.slot) % traces.size()],
                       rented_.reclaim.trace_length, now_);
}

// The autoscaler gives up on the node. One that never came costs nothing. Of a request for all or
// none, those that came are given back.
void Life::on_provision_timeout(Node& node) {
  Pool& pool = cluster_.pool_of(node);
  autoscaler_->gave_up(*this, pool);
  recorder_.mark("provision timeout", int(node.pool), int(node.slot), now_);
  const std::uint32_t request = node.request;
  end_lease(node, false);
  if (is_atomic(pool.plan->provisioning_model)) withdraw_request(pool, request);
}

/// Ready for pods, with its next maintenance and failure drawn anew. What would come after its
/// lease is not scheduled: under many reclaims it would fill the queue.
void Life::come_up(Node& node) {
  Pool& pool = cluster_.pool_of(node);
  set_state(node, NodeState::ready);
  ++node.up;
  const std::uint32_t index = cluster_.index_of(node);
  if (rented_.maintenance.on && has_maintenance(*pool.plan)) {
    const SimTime begin = next_maintenance(node, pool);
    // The job trains on until a save just fits before the machine goes.
    const SimTime save = begin - longest_save_;
    const bool in_time = save >= std::max(now_, begin - maintenance_notice_);
    const bool noticed = any_saves_ && in_time;
    const SimTime at = noticed ? save : begin;
    if (at <= node.lease_ends)
      schedule(at, noticed ? EventKind::maintenance_notice : EventKind::maintenance_begin, index,
               node.up);
  }
  schedule_failure(node);
}

void Life::hold(Job& job, Node& node) {
  Pool& pool = cluster_.pool_of(node);
  const PoolShare& share = job.share(node.pool);
  Holding& holding = job.holdings[job.home(node.pool)];
  record_state(node);
  stop_standing_by(node);
  pool.free.erase(node.slot);
  ++job.holdings[node.pool].held;
  ++node.use;
  node.held = true;
  node.job = job.index;
  node.state_since = now_;
  node.workers = std::min(holding.workers_to_place, share.workers_per_node);
  node.chief = share.chief && !job.chief_placed;
  job.chief_placed = job.chief_placed || node.chief;
  node.job_active_at_hold = job.active_until(now_);
  const SimDuration start_up = (node.cold ? job.image_pull : SimDuration{0}) + job.start_up;
  const bool beside = job.active() || (job.is_elastic() && job.started);
  if (beside) {
    // Training goes on meanwhile, or waits for enough of them; the newcomer's workers start up.
    bank(job);
    node.joining = true;
    job.shares.joining += node.workers;
    schedule(now_ + start_up, EventKind::worker_joined, cluster_.index_of(node), node.use);
  } else if (node.cold) {
    job.cold_nodes.push_back(cluster_.index_of(node));
  }
  if (!beside && job.keeps_processes()) {
    // A node that stands by pulls the image and starts its processes in that time.
    const bool warm = job.restart_rules.kind == RestartKind::warm_spare && job.started;
    const SimDuration ahead = warm ? now_ - node.free_since : SimDuration{0};
    node.start_up = std::max(SimDuration{0}, start_up - ahead);
    job.new_nodes.push_back(cluster_.index_of(node));
  }
  holding.workers_to_place -= node.workers;
}

void Life::on_worker_joined(Node& node) {
  if (!node.joining) return;  // the job was interrupted and all start together
  Job& job = jobs_[node.job];
  bank(job);
  node.joining = false;
  node.cold = false;
  job.shares.joining -= node.workers;
  if (!job.is_elastic()) job.shares.live += node.workers;
  set_pace(job);
}

/// The job leaves the node. Call bank() before.
void Life::let_go(Node& node, NodeState next) {
  Pool& pool = cluster_.pool_of(node);
  Job& job = jobs_[node.job];
  Holding& holding = job.holdings[job.home(node.pool)];
  node.busy += job.active_until(now_) - node.job_active_at_hold;
  record_state(node);
  if (job.is_elastic() && node.joining)
    job.shares.joining -= node.workers;
  else if (job.is_elastic() && node.member && job.active())
    job.shares.live = std::max(0, job.shares.live - node.workers);
  else if (!job.is_elastic() && job.active())
    (node.joining ? job.shares.joining : job.shares.live) -= node.workers;
  holding.workers_to_place += node.workers;
  node.workers = 0;
  if (node.chief) job.chief_placed = false;
  node.held = node.chief = node.joining = node.member = false;
  node.state_since = node.free_since = now_;
  --job.holdings[node.pool].held;
  pool.free.insert(node.slot);
  std::erase(job.cold_nodes, cluster_.index_of(node));
  std::erase(job.new_nodes, cluster_.index_of(node));
  set_state(node, next);
}

void Life::end_lease(Node& node, bool reclaimed) {
  Pool& pool = cluster_.pool_of(node);
  if (node.held) let_go(node, NodeState::ready);
  stop_standing_by(node);
  node.free_since = now_;
  if (node.state == NodeState::away) node.away += now_ - node.state_since;
  if (node.was_ready) {
    const auto& reservation = pool.plan->reservation;
    const bool in_place = reservation && int(node.slot) < reservation->nodes;
    SimDuration term = SimDuration::max();
    if (in_place && reservation->until)
      term = SimTime{} + to_clock(*reservation->until) - node.requested;
    const LeaseCharge charged =
        charge_lease(pool.plan->price, billing_of(rented_.billing, pool.plan->minimum_rental),
                     {now_ - node.requested, node.away, node.busy, reclaimed, node.standby},
                     in_place ? &*reservation : nullptr, term);
    cost_.add(charged);
    pool.node_time += charged.billed;
    pool.reserved_time += charged.reserved;
  }
  if (node.replaces) {  // it never took the other's place
    cluster_.nodes[*node.replaces].replaced = false;
    autoscaler_->gave_up(*this, pool);
  }
  autoscaler_->node_went(node, now_);
  node.draining = node.replaced = false;
  node.replaces.reset();
  set_state(node, NodeState::none);
  ++node.lease;
  ++node.up;
  --open_leases_;
}

void Life::on_unneeded(Node& node) {
  const SimTime at = autoscaler_->deletes_at(*this, node);
  Pool& pool = cluster_.pool_of(node);
  if (at == SimTime::max() && !all_done()) {
    node.deletion_planned = false;  // kept until the last job is over
  } else if (at > now_ && at != SimTime::max()) {
    schedule(at, EventKind::unneeded, cluster_.index_of(node), node.use);
  } else if (all_done() || pool.size(cluster_.slots(pool)) > pool.plan->nodes_min) {
    end_lease(node, false);
  }
}

/// The job is over and others are not: its nodes are there for them.
void Life::leave_nodes(const Job& job) {
  for (Node& node : cluster_.nodes)
    if (node.held && node.job == job.index) let_go(node, NodeState::ready);
}

/// The job stopped, and waits for nodes anyway.
void Life::leave_fallbacks(const Job& job) {
  if (!autoscaler_->leaves_fallbacks(*this)) return;
  for (Node& node : cluster_.nodes) {
    const bool is_fallback = cluster_.pool_of(node).preferred.has_value();
    if (is_fallback && node.held && node.job == job.index) let_go(node, NodeState::ready);
  }
}

/// The last job is over: instance groups of fixed size go, and of autoscaled
/// ones as many as their minimum kept; the autoscaler deletes the others when
/// they have been unneeded long enough. Requests under way are withdrawn,
/// machines that are away do not come back.
void Life::delete_nodes() {
  for (Pool& pool : cluster_.pools) {
    int keep = pool.autoscaled ? pool.plan->nodes_min : cluster_.slots(pool);
    const auto slots = static_cast<std::uint32_t>(cluster_.slots(pool));
    for (std::uint32_t s = 0; s < slots; ++s) {
      Node& node = cluster_.nodes[pool.first_node + s];
      if (node.state == NodeState::none) continue;
      if (keep-- > 0 || node.state != NodeState::ready) {
        end_lease(node, false);
      } else if (node.held) {
        let_go(node, NodeState::ready);
      } else {
        node.deletion_planned = false;
        pool.freed.push_back(node.slot);
        ++node.use;
      }
    }
  }
}

}  // namespace reckon
