#include <algorithm>

#include "sim/cluster/life/state.h"
#include "sim/cluster/never.h"

// When the autoscaler looks, and what it does: nodes for pods without one, nodes that are drained.
namespace reckon {

int Life::missing(const Pool& pool) const {
  const auto p = static_cast<std::uint32_t>(&pool - cluster_.pools.data());
  const std::uint32_t home = pool.preferred.value_or(p);
  int wanted = leaving_pods(home);
  for (const std::uint32_t k : wanting_) wanted += jobs_[k].lacks(home);
  const auto less = [&](std::uint32_t other) {
    const Pool& one = cluster_.pools[other];
    if (other == p || takes_pods(one)) wanted -= one.for_pods();
  };
  less(home);
  for (const std::uint32_t other : cluster_.pools[home].fallbacks) less(other);
  return wanted;
}

int Life::missing_of_whole_jobs(const Pool& pool, int room) const {
  const auto p = static_cast<std::uint32_t>(&pool - cluster_.pools.data());
  const std::uint32_t home = pool.preferred.value_or(p);
  int wanted = 0;
  for (const std::uint32_t k : wanting_) wanted += jobs_[k].lacks(home);
  int there = wanted - missing(pool), nodes = 0;  // nodes for pods
  for (const std::uint32_t k : wanting_) {
    const int lacks = jobs_[k].lacks(home), given = std::clamp(there, 0, lacks);
    there -= given;
    if (nodes + lacks - given > room) break;
    nodes += lacks - given;
  }
  return nodes;
}

/// Pods of nodes that are being drained, which will want others: those that may be evicted
/// [Karpenter: CurrentlyReschedulablePods in pkg/controllers/state/statenode.go].
int Life::leaving_pods(std::size_t home) const {
  if (!any_draining_ || !autoscaler_->evicts()) return 0;
  int pods = 0;
  for (const Node& node : cluster_.nodes)
    if (node.draining && node.held && jobs_[node.job].home(node.pool) == home) ++pods;
  return pods;
}

/// Pods that no node can take make the autoscaler look.
void Life::wake_autoscaler() {
  if (any_wants_nodes()) {
    const SimTime at = autoscaler_->next_look(*this);
    if (at != scan_planned_) {
      scan_planned_ = at;
      if (at != SimTime::max()) schedule(at, EventKind::scan);
    }
  }
  if (!autoscaler_->evicts()) return;
  const SimTime at = autoscaler_->next_disruption(*this);
  if (at == disruption_planned_) return;
  disruption_planned_ = at;
  if (at != SimTime::max()) schedule(at, EventKind::disrupt);
}

void Life::on_scan() {
  scan_planned_ = SimTime::max();
  autoscaler_->look(*this);
}

void Life::on_disrupt() {
  disruption_planned_ = SimTime::max();
  autoscaler_->disrupt(*this);
}

/// When the provider has the machine for a node that is asked for now: at the end of flex-start's
/// queue, and not before the pool of a first node is made.
SimTime Life::capacity_at(const Node& node, Pool& pool) {
  const PlannedPool& plan = *pool.plan;
  const auto drawn = [&](const Fact<Seconds>& delay, RandomStream stream) {
    return now_ + DelayLaw{delay}.draw(stream);
  };
  if (pool.request_at != now_) {
    pool.request_at = now_;
    ++pool.requests;
    if (plan.provisioning_model == ProvisioningModel::flex_start_queued)
      pool.request_given =
          drawn(plan.capacity_wait, {options_.seed, options_.replication, kCapacityWait,
                                     pool.entity ^ (pool.requests * 0x9e3779b9u)});
  }
  SimTime at = now_;
  if (plan.provisioning_model == ProvisioningModel::flex_start)
    at = drawn(plan.capacity_wait, stream_of(node, kCapacityWait, node.lease));
  if (plan.provisioning_model == ProvisioningModel::flex_start_queued) at = pool.request_given;
  if (plan.pool_creation.value.count() > 0) {
    if (pool.size(cluster_.slots(pool)) == 1)
      pool.created_at = drawn(plan.pool_creation, stream_of(node, kPoolCreation, node.lease));
    at = std::max(at, pool.created_at);
  }
  return at;
}

/// From capacity to ready: of a slice of several hosts, those of the slowest
/// [cloud.google.com/kubernetes-engine/docs/concepts/tpus: a multi-host slice is made as one].
SimDuration Life::delay_of(Node& node, Pool& pool) {
  SimDuration slowest = pool.provisioning_delay.draw(node.provisioning);
  for (int host = 1; pool.plan->slice && host < pool.plan->slice->hosts; ++host)
    slowest = std::max(slowest, pool.provisioning_delay.draw(node.provisioning));
  return slowest;
}

/// Nodes of the request that no running job has end.
void Life::withdraw_request(Pool& pool, std::uint32_t request) {
  const auto slots = static_cast<std::uint32_t>(cluster_.slots(pool));
  for (std::uint32_t s = 0; s < slots; ++s) {
    Node& node = cluster_.nodes[pool.first_node + s];
    if (node.state == NodeState::none || node.request != request) continue;
    if (node.held && jobs_[node.job].active()) continue;
    if (node.held) bank(jobs_[node.job]);
    end_lease(node, false);
  }
}

Node& Life::request_node(Pool& pool) {
  const std::uint32_t slot = pool.empty.first();
  request_node(pool, slot, true);
  return cluster_.nodes[pool.first_node + slot];
}

void Life::replace_node(Node& old, Pool& pool) {
  Node& fresh = request_node(pool);
  fresh.replaces = cluster_.index_of(old);
  fresh.replaces_use = old.use;
  old.replaced = true;
}

/// The node that replaces another is ready.
void Life::replaced_by(Node& fresh) {
  Node& old = cluster_.nodes[*fresh.replaces];
  fresh.replaces.reset();
  if (old.held && old.use == fresh.replaces_use)
    return evict(old, Interruption::maintenance, now_ + reclaim_notice_);
  old.replaced = false;  // its pods have left it before
  autoscaler_->gave_up(*this, cluster_.pool_of(fresh));
}

void Life::drain(Node& node) {
  node.draining = true;
  any_draining_ = true;
}

/// The pods are told to end, and have until `deadline`: a checkpoint that can be made by then is
/// made, else the job loses the node at once.
void Life::evict(Node& node, Interruption cause, SimTime deadline) {
  drain(node);
  recorder_.mark("drained", int(node.pool), int(node.slot), now_);
  if (!node.held) return;
  evacuate(node, cause, deadline);
  const Job& job = jobs_[node.job];
  const std::uint32_t index = cluster_.index_of(node);
  const bool saves =
      job.phase == JobPhase::evacuating &&
      std::ranges::any_of(job.evacuated, [&](const Evacuation& e) { return e.node == index; });
  if (!saves) lose_node(node, cause, NodeState::leaving);
}

void Life::on_expired(Node& node) {
  if (node.draining) return;
  drain(node);
  if (!node.held) return;
  if (autoscaler_->evicts()) return evict(node, Interruption::maintenance, now_ + reclaim_notice_);
  const SimDuration patience = autoscaler_->drain_patience(node);
  if (patience == SimDuration::max()) return;
  schedule(now_ + std::max(SimDuration{0}, patience - reclaim_notice_), EventKind::drain_over,
           cluster_.index_of(node), node.use);
}

void Life::on_drain_over(Node& node) {
  evict(node, Interruption::maintenance, now_ + reclaim_notice_);
}

/// Nodes that are drained and have no pods any more end.
void Life::drop_drained() {
  any_draining_ = false;
  for (Node& node : cluster_.nodes) {
    if (!node.draining) continue;
    const bool there = node.state == NodeState::ready || node.state == NodeState::leaving ||
                       node.state == NodeState::drained;
    if (there && !node.held)
      end_lease(node, false);
    else
      any_draining_ = true;
  }
}

}  // namespace reckon
