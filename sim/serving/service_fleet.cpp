#include <algorithm>

#include "sim/base/check.h"
#include "sim/serving/service_state.h"

namespace reckon {

Fleet::Fleet(const ServiceSetting& setting) : setting_(setting) {}

void Fleet::push(SimTime at, ServiceEventKind kind, std::uint32_t entity, std::uint32_t stamp) {
  events_.push({at, sequence_++, kind, entity, stamp});
}

ServiceEvent Fleet::pop() {
  const ServiceEvent event = events_.top();
  events_.pop();
  return event;
}

int Fleet::alive() const {
  return static_cast<int>(std::count_if(replicas.begin(), replicas.end(), [](const Replica& r) {
    return r.state != ReplicaState::draining && r.state != ReplicaState::gone;
  }));
}

int Fleet::nodes_kept() const {
  return static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [](const ServiceNode& n) { return n.kept(); }));
}

void Fleet::begin(SimTime now) {
  const int replicas_wanted = setting_.replicas.initial + setting_.replicas.standby;
  const int needed =
      (replicas_wanted + setting_.replicas_per_node - 1) / setting_.replicas_per_node;
  const int first = std::clamp(needed, setting_.nodes_initial, setting_.nodes_max);
  for (int k = 0; k < first; ++k) {
    ServiceNode node;
    node.requested = node.ready = now;
    nodes.push_back(node);
  }
  desired_ = setting_.replicas.initial;
  for (int k = 0; k < replicas_wanted; ++k) create(now, true);
  choose_serving(now);
  for (std::uint32_t k = 0; k < nodes.size(); ++k)
    if (nodes[k].used == 0)
      push(now + to_clock(setting_.node_unneeded), ServiceEventKind::node_unneeded, k,
           nodes[k].stamp);
}

/// A node that is there before one on its way, the fullest first: so empty ones stay empty and go.
std::size_t Fleet::node_with_room(SimTime now) {
  std::size_t best = nodes.size();
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const ServiceNode& n = nodes[k];
    if (!n.kept() || n.used >= setting_.replicas_per_node) continue;
    if (best == nodes.size()) {
      best = k;
      continue;
    }
    const ServiceNode& b = nodes[best];
    const bool n_is_there = n.ready <= now, b_is_there = b.ready <= now;
    if (n_is_there != b_is_there ? n_is_there : n.used > b.used) best = k;
  }
  if (best < nodes.size()) return best;
  // The node autoscaler finds the pending pod at its next look.
  const SimDuration scan = to_clock(setting_.node_scan);
  SimTime noticed = now;
  if (scan.count() > 0) {
    const SimDuration since = now.time_since_epoch() % scan;
    noticed = now + (scan - since) % scan;
  }
  ServiceNode node;
  node.requested = noticed;
  node.ready = noticed + to_clock(setting_.node_provisioning);
  nodes.push_back(node);
  return nodes.size() - 1;
}

void Fleet::create(SimTime now, bool at_once) {
  const std::size_t where = node_with_room(now);
  RECKON_CHECK(nodes_kept() <= setting_.nodes_max);
  ServiceNode& node = nodes[where];
  ++node.used;
  ++node.stamp;  // it is needed
  Replica replica;
  replica.node = where;
  const auto id = static_cast<std::uint32_t>(replicas.size());
  if (at_once) {
    replica.state = ReplicaState::standby;
    node.pulled = true;
  } else {
    const SimTime from = std::max(now, node.ready);
    const Seconds start = node.pulled ? setting_.replica_start : setting_.first_replica_start;
    node.pulled = true;
    push(from + to_clock(start), ServiceEventKind::replica_ready, id, 0);
  }
  replicas.push_back(std::move(replica));
}

void Fleet::scale(SimTime now, int desired) {
  desired_ = desired;
  const int wanted = desired + setting_.replicas.standby;
  while (alive() < wanted) create(now, false);
  while (alive() > wanted) remove_one(now);
  choose_serving(now);
}

/// Not ready before ready, without requests before with, the newest first (the order in which a
/// ReplicaSet deletes pods).
void Fleet::remove_one(SimTime now) {
  const auto order = [](ReplicaState s) {
    return s == ReplicaState::starting ? 0 : s == ReplicaState::standby ? 1 : 2;
  };
  std::size_t victim = replicas.size();
  for (std::size_t k = 0; k < replicas.size(); ++k) {
    const ReplicaState s = replicas[k].state;
    if (s == ReplicaState::draining || s == ReplicaState::gone) continue;
    if (victim == replicas.size() || order(s) <= order(replicas[victim].state)) victim = k;
  }
  RECKON_CHECK(victim < replicas.size());
  Replica& r = replicas[victim];
  r.state = ReplicaState::draining;
  if (!r.busy && r.queue.empty()) release(now, static_cast<std::uint32_t>(victim));
}

void Fleet::release(SimTime now, std::uint32_t replica) {
  Replica& r = replicas[replica];
  r.state = ReplicaState::gone;
  ServiceNode& node = nodes[r.node];
  if (--node.used > 0) return;
  ++node.stamp;
  push(now + to_clock(setting_.node_unneeded), ServiceEventKind::node_unneeded,
       static_cast<std::uint32_t>(r.node), node.stamp);
}

void Fleet::on_unneeded(SimTime now, std::uint32_t node, std::uint32_t stamp) {
  ServiceNode& n = nodes[node];
  if (n.stamp != stamp || n.used > 0 || !n.kept() || nodes_kept() <= setting_.nodes_min) return;
  n.deleted = now;
}

void Fleet::on_ready(SimTime now, std::uint32_t replica) {
  if (replicas[replica].state != ReplicaState::starting) return;
  replicas[replica].state = ReplicaState::standby;
  choose_serving(now);
}

/// The oldest ready ones take requests, as many as are desired.
void Fleet::choose_serving(SimTime now) {
  serving.clear();
  for (std::uint32_t k = 0; k < replicas.size(); ++k) {
    Replica& r = replicas[k];
    if (r.state != ReplicaState::standby && r.state != ReplicaState::serving) continue;
    if (static_cast<int>(serving.size()) >= desired_) {
      r.state = ReplicaState::standby;  // what waits at it is still served
      continue;
    }
    if (r.state == ReplicaState::standby) {
      r.state = ReplicaState::serving;
      r.looked_at = now;
      r.busy_at_look = r.busy_total;
    }
    serving.push_back(k);
  }
}

std::vector<SimDuration> Fleet::leases(SimTime end) const {
  std::vector<SimDuration> out;
  for (const ServiceNode& node : nodes) {
    const SimTime from = std::max(SimTime{}, node.requested);
    const SimTime to = std::min(end, node.deleted);
    if (to > from) out.push_back(to - from);
  }
  return out;
}

}  // namespace reckon
