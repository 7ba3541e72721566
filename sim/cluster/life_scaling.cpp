#include <algorithm>

#include "sim/cluster/life_state.h"
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
  for (const std::uint32_t other : cluster_.pools[home].stand_ins) less(other);
  return wanted;
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
  if (!any_draining_) return;
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
