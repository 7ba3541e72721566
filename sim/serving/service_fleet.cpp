#include <algorithm>

#include "sim/base/check.h"
#include "sim/serving/service_state.h"

namespace reckon {

namespace {
constexpr Purpose kNodeReclaim{"serving_reclaim"};
}

Fleet::Fleet(const ServiceSetting& setting, std::uint64_t seed) : setting_(setting), seed_(seed) {
  if (setting.reclaim) reclaim_.emplace(setting.reclaim->law);
}

void Fleet::push(SimTime at, ServiceEventKind kind, std::uint32_t entity, std::uint32_t stamp) {
  events_.push({at, sequence_++, kind, entity, stamp});
}

ServiceEvent Fleet::pop() {
  const ServiceEvent event = events_.top();
  events_.pop();
  return event;
}

void Fleet::begin(SimTime now) {
  const int replicas_wanted = setting_.replicas.initial + setting_.replicas.standby;
  const int needed =
      (replicas_wanted + setting_.replicas_per_node - 1) / setting_.replicas_per_node;
  const int first = std::clamp(needed, setting_.nodes_initial, setting_.nodes_max);
  for (int k = 0; k < first; ++k) add_node(now, now, k);
  desired_ = setting_.replicas.initial;
  for (int k = 0; k < replicas_wanted; ++k) create(now, true);
  choose_serving(now);
  for (std::uint32_t k = 0; k < nodes.size(); ++k)
    if (nodes[k].used == 0)
      push(now + to_clock(setting_.node_unneeded), ServiceEventKind::node_unneeded, k,
           nodes[k].stamp);
}

/// A node that is there before one on its way, the fullest first: so empty ones stay empty and go.
/// nullopt: none, and there are as many as there may be.
std::optional<std::size_t> Fleet::node_with_room(SimTime now) {
  std::optional<std::size_t> best;
  for (const std::size_t k : kept_) {
    const ServiceNode& n = nodes[k];
    if (n.used >= setting_.replicas_per_node || n.leaving) continue;
    if (!best) {
      best = k;
      continue;
    }
    const ServiceNode& b = nodes[*best];
    const bool n_is_there = n.ready <= now, b_is_there = b.ready <= now;
    if (n_is_there != b_is_there ? n_is_there : n.used > b.used) best = k;
  }
  if (best) return best;
  if (static_cast<int>(kept_.size()) >= setting_.nodes_max) return std::nullopt;
  return request_node(now);
}

/// The node autoscaler finds the pending pod at its next look.
std::size_t Fleet::request_node(SimTime now) {
  const SimDuration scan = to_clock(setting_.node_scan);
  SimTime noticed = now;
  if (scan.count() > 0) {
    const SimDuration since = now.time_since_epoch() % scan;
    noticed = now + (scan - since) % scan;
  }
  add_node(noticed, noticed + to_clock(setting_.node_provisioning), lowest_free_slot());
  return nodes.size() - 1;
}

void Fleet::add_node(SimTime requested, SimTime ready, int slot) {
  ServiceNode node;
  node.requested = requested;
  node.ready = ready;
  node.slot = slot;
  nodes.push_back(node);
  kept_.push_back(nodes.size() - 1);
  set_reclaim(nodes.size() - 1);
}

/// When the provider takes the node back, where that is in the period: what comes after it changes
/// nothing that is counted.
void Fleet::set_reclaim(std::size_t node) {
  if (!reclaim_ || reclaim_->never()) return;
  const ServiceNode& n = nodes[node];
  const auto& trace = setting_.reclaim->trace;
  SimTime goes = SimTime::max();
  if (!reclaim_->from_trace()) {
    RandomStream random(seed_, 0, kNodeReclaim, static_cast<std::uint32_t>(node));
    goes = n.ready + reclaim_->draw(random);
  } else if (!trace.empty()) {
    goes = next_in_trace(trace[std::size_t(n.slot) % trace.size()], setting_.reclaim->trace_length,
                         n.ready);
  }
  if (goes > SimTime{} + to_clock(setting_.period)) return;
  const auto id = static_cast<std::uint32_t>(node);
  const SimTime said = goes - to_clock(setting_.reclaim->notice);
  push(std::max(n.ready, said), ServiceEventKind::node_notice, id, 0);
  push(goes, ServiceEventKind::node_reclaimed, id, 0);
}

int Fleet::lowest_free_slot() const {
  std::vector<bool> taken(kept_.size() + 1);
  for (const std::size_t k : kept_)
    if (const auto slot = std::size_t(nodes[k].slot); slot < taken.size()) taken[slot] = true;
  return static_cast<int>(std::find(taken.begin(), taken.end(), false) - taken.begin());
}

void Fleet::create(SimTime now, bool at_once) {
  const auto id = static_cast<std::uint32_t>(replicas.size());
  replicas.emplace_back();
  replicas.back().state = ReplicaState::pending;
  present_.push_back(id);
  ++alive_;
  const bool placed = place(now, id);
  if (!at_once) {
    if (placed) start(now, id);
    return;
  }
  RECKON_CHECK(placed);  // the first ones fit: what the most of them need was checked
  replicas[id].state = ReplicaState::standby;
  nodes[replicas[id].node].pulled = now;
}

bool Fleet::place(SimTime now, std::uint32_t replica) {
  const auto where = node_with_room(now);
  if (!where) return false;
  replicas[replica].node = *where;
  ++nodes[*where].used;
  ++nodes[*where].stamp;  // it is needed
  return true;
}

/// The first one of a node has its image pulled; others of it wait for the same pull.
void Fleet::start(SimTime now, std::uint32_t replica) {
  Replica& r = replicas[replica];
  ServiceNode& node = nodes[r.node];
  r.state = ReplicaState::starting;
  const SimTime there = std::max(now, node.ready);
  if (node.pulled == SimTime::max()) node.pulled = there + to_clock(setting_.image_pull);
  push(std::max(there, node.pulled) + to_clock(setting_.replica_start),
       ServiceEventKind::replica_ready, replica, 0);
}

void Fleet::place_pending(SimTime now) {
  for (const std::uint32_t k : present_) {
    if (replicas[k].state != ReplicaState::pending) continue;
    if (!place(now, k)) return;
    start(now, k);
  }
}

void Fleet::scale(SimTime now, int desired) {
  desired_ = desired;
  const int wanted = desired + setting_.replicas.standby;
  while (alive_ < wanted) create(now, false);
  while (alive_ > wanted) remove_one(now);
  choose_serving(now);
}

/// Without a node before with one, not ready before ready, without requests before with, the newest
/// first (the order in which a ReplicaSet deletes pods).
void Fleet::remove_one(SimTime now) {
  const auto order = [](ReplicaState s) {
    return s == ReplicaState::pending    ? 0
           : s == ReplicaState::starting ? 1
           : s == ReplicaState::standby  ? 2
                                         : 3;
  };
  std::optional<std::uint32_t> victim;
  for (const std::uint32_t k : present_) {
    const ReplicaState s = replicas[k].state;
    if (s == ReplicaState::draining) continue;
    if (!victim || order(s) <= order(replicas[*victim].state)) victim = k;
  }
  RECKON_CHECK(victim.has_value());
  --alive_;
  Replica& r = replicas[*victim];
  if (r.state == ReplicaState::pending) {
    r.state = ReplicaState::gone;
    std::erase(present_, *victim);
    return;
  }
  r.state = ReplicaState::draining;
  if (!r.busy && r.queue.empty()) release(now, *victim);
}

void Fleet::release(SimTime now, std::uint32_t replica) {
  Replica& r = replicas[replica];
  r.state = ReplicaState::gone;
  std::erase(present_, replica);
  --nodes[r.node].used;
  place_pending(now);
  ServiceNode& node = nodes[r.node];
  if (node.used > 0) return;
  if (node.ready > now) node.pulled = SimTime::max();  // nothing was pulled there yet
  ++node.stamp;
  push(now + to_clock(setting_.node_unneeded), ServiceEventKind::node_unneeded,
       static_cast<std::uint32_t>(r.node), node.stamp);
}

void Fleet::on_unneeded(SimTime now, std::uint32_t node, std::uint32_t stamp) {
  ServiceNode& n = nodes[node];
  if (n.stamp != stamp || n.used > 0 || !n.kept()) return;
  if (static_cast<int>(kept_.size()) <= setting_.nodes_min) return;
  n.deleted = now;
  std::erase(kept_, std::size_t(node));
}

void Fleet::on_notice(SimTime now, std::uint32_t node) {
  ServiceNode& n = nodes[node];
  if (!n.kept()) return;
  n.leaving = true;
  const std::vector<std::uint32_t> before = present_;
  for (const std::uint32_t k : before) {
    Replica& r = replicas[k];
    if (r.state == ReplicaState::pending || r.state == ReplicaState::draining || r.node != node)
      continue;
    --alive_;
    const bool idle = !r.busy && r.queue.empty();
    if (r.state == ReplicaState::starting || idle) {
      r.state = ReplicaState::gone;
      std::erase(present_, k);
      --n.used;
    } else {
      r.state = ReplicaState::draining;
    }
  }
  scale(now, desired_);
}

std::vector<std::uint32_t> Fleet::on_reclaimed(SimTime now, std::uint32_t node) {
  ServiceNode& n = nodes[node];
  if (!n.kept()) return {};
  n.deleted = now;
  n.reclaimed = true;
  std::erase(kept_, std::size_t(node));
  std::vector<std::uint32_t> unfinished;
  for (const std::uint32_t k : present_)
    if (replicas[k].state == ReplicaState::draining && replicas[k].node == node)
      unfinished.push_back(k);
  for (const std::uint32_t k : unfinished) {
    replicas[k].state = ReplicaState::gone;
    std::erase(present_, k);
  }
  n.used = 0;
  place_pending(now);
  while (static_cast<int>(kept_.size()) < setting_.nodes_min) request_node(now);
  return unfinished;
}

void Fleet::on_ready(SimTime now, std::uint32_t replica) {
  if (replicas[replica].state != ReplicaState::starting) return;
  replicas[replica].state = ReplicaState::standby;
  choose_serving(now);
}

/// The oldest ready ones take requests, as many as are desired.
void Fleet::choose_serving(SimTime now) {
  serving.clear();
  for (const std::uint32_t k : present_) {
    Replica& r = replicas[k];
    if (r.state != ReplicaState::standby && r.state != ReplicaState::serving) continue;
    if (static_cast<int>(serving.size()) >= desired_) {
      r.state = ReplicaState::standby;  // what waits at it is still served
      continue;
    }
    if (r.state == ReplicaState::standby) {
      r.state = ReplicaState::serving;
      r.looked_at = now;
      r.busy_at_look = r.busy_until(now);  // a batch of before may still run
    }
    serving.push_back(k);
  }
}

std::vector<ServiceLease> Fleet::leases(SimTime end) const {
  std::vector<ServiceLease> out;
  for (const ServiceNode& node : nodes) {
    const SimTime from = std::max(SimTime{}, node.requested);
    const SimTime to = std::min(end, node.deleted);
    if (node.ready >= to) continue;  // it never became one (billing.h)
    if (to > from)
      out.push_back({from, to - from, node.slot, node.reclaimed && node.deleted <= end});
  }
  return out;
}

}  // namespace reckon
