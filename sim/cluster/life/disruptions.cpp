#include <algorithm>
#include <cmath>

#include "sim/cluster/life/state.h"
#include "sim/cluster/never.h"

// What takes a node away: reclaims, maintenance, failures, and when.
namespace reckon {

/// Memoryless: the next event of a node that has been up for any time.
SimDuration Life::wait(Seconds mean, RandomStream& stream) const {
  const double nanoseconds = std::nearbyint(mean.count() * 1e9) * stream.exponential();
  return SimDuration{std::llrint(std::min(nanoseconds, kNeverNanoseconds))};
}

RandomStream Life::stream_of(const Node& node, Purpose purpose, std::uint32_t time) const {
  constexpr std::uint32_t kGolden = 0x9e3779b9u;  // odd: another number for every time
  const std::uint32_t entity = cluster_.pools[node.pool].entity | node.slot;
  return {options_.seed, options_.replication, purpose, entity ^ (time * kGolden)};
}

/// Each node has a time of its own, or all of a pool have one together: from the end of one such
/// time to the begin of the next it is exponential.
SimTime Life::next_maintenance(Node& node, Pool& pool) const {
  if (!rented_.maintenance.grouped) return now_ + wait(maintenance_mean_, node.maintenance);
  while (pool.maintenance_begins <= now_) {
    if (pool.maintenance_begins > SimTime{}) pool.maintenance_begins += maintenance_time_;
    pool.maintenance_begins += wait(maintenance_mean_, pool.maintenance);
  }
  return pool.maintenance_begins;
}

// Whatever is done in time is done before the node goes, so it is scheduled first.
void Life::on_reclaim_notice(Node& node) {
  recorder_.mark("reclaim notice", int(node.pool), int(node.slot), now_);
  if (cluster_.pool_of(node).plan->node_pool && autoscaler_->drains_at_notice(node)) {
    if (autoscaler_->evicts())
      evict(node, cause_of_end(node), node.goes_at);
    else
      drain(node);
  }
  if (node.held && !(node.draining && autoscaler_->evicts()))
    evacuate(node, cause_of_end(node), node.goes_at);
  schedule(node.goes_at, EventKind::taken, cluster_.index_of(node), node.lease);
}

// A pool that does not scale keeps its size: its instance group makes a new node at once. In a pool
// that does, the pods that wait make the autoscaler ask for one.
void Life::on_taken(Node& node) {
  Pool& pool = cluster_.pool_of(node);
  const bool block = node.goes_at == block_end(node, pool);
  const Interruption cause = block ? Interruption::maintenance : cause_of_end(node);
  const bool reclaimed = cause == Interruption::preemption;
  recorder_.mark(reclaimed ? "reclaimed" : "run over", int(node.pool), int(node.slot), now_);
  if (node.held) lose_node(node, cause, NodeState::leaving);
  end_lease(node, reclaimed);
  if (block && !all_done()) pool.outlived = true;
  if (is_over(pool)) return give_up_what_needs(pool);
  if (!pool.autoscaled && !all_done()) request_node(pool, node.slot, false);
}

void Life::on_maintenance_notice(Node& node) {
  const SimTime begin = now_ + longest_save_;
  recorder_.mark("save before maintenance", int(node.pool), int(node.slot), now_);
  if (node.held) evacuate(node, Interruption::maintenance, begin);
  schedule(begin, EventKind::maintenance_begin, cluster_.index_of(node), node.up);
}

void Life::on_maintenance_begin(Node& node) {
  if (node.held) lose_node(node, Interruption::maintenance, NodeState::drained);
  set_state(node, NodeState::away);
  ++node.up;
  schedule(now_ + maintenance_time_, EventKind::maintenance_end, cluster_.index_of(node), node.up);
}

namespace {

/// Another one for each failure of a node, those included that leave it up.
std::uint32_t failure_number(const Node& node) {
  constexpr std::uint32_t kOfCrashes = 0x10001u;
  return node.up + kOfCrashes * node.crashes;
}

}  // namespace

/// A synchronous job whose nodes all wait in a collective for one that does not answer.
bool Life::hangs(const Node& node) const {
  const double share = rented_.failures.hang_share.value;
  if (share <= 0 || !node.held) return false;
  const Job& job = jobs_[node.job];
  if (job.phase != JobPhase::running || goes_on_without(node)) return false;
  return stream_of(node, kHang, failure_number(node)).uniform() < share;
}

bool Life::ends_process_only(const Node& node) const {
  const double share = rented_.failures.process_share.value;
  return share > 0 && stream_of(node, kProcess, failure_number(node)).uniform() < share;
}

/// Not behind the node's lease: under many reclaims that would fill the queue.
void Life::schedule_failure(Node& node) {
  const Pool& pool = cluster_.pool_of(node);
  if (pool.failure_mean.count() <= 0) return;
  const SimTime fails = now_ + wait(pool.failure_mean, node.failure);
  if (fails <= node.lease_ends)
    schedule(fails, EventKind::failed, cluster_.index_of(node), node.up);
}

void Life::on_failed(Node& node) {
  if (!hangs(node)) return on_hang_found(node);
  recorder_.mark("hangs", int(node.pool), int(node.slot), now_);
  set_phase(jobs_[node.job], JobPhase::hung);
  schedule(now_ + hang_detection_, EventKind::hang_found, cluster_.index_of(node), node.up);
}

void Life::on_hang_found(Node& node) {
  if (ends_process_only(node)) {
    recorder_.mark("process failed", int(node.pool), int(node.slot), now_);
    ++node.crashes;
    if (node.held) lose_process(node);
    return schedule_failure(node);
  }
  recorder_.mark("failed", int(node.pool), int(node.slot), now_);
  if (node.held) lose_node(node, Interruption::failure, NodeState::repairing);
  set_state(node, NodeState::repairing);
  node.cold = true;  // repair makes the machine anew
  ++node.up;
  schedule(now_ + repair_time_, EventKind::repaired, cluster_.index_of(node), node.up);
}

void Life::on_back(Node& node) {
  if (node.state == NodeState::away) node.away += now_ - node.state_since;
  come_up(node);
}

}  // namespace reckon
