#pragma once
#include <deque>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "sim/base/random.h"
#include "sim/cluster/disruptions.h"
#include "sim/serving/service.h"

// The parts of a service while it lives. Used by service*.cpp alone.
namespace reckon {

/// pending: no node has room for it, and there may be no more of them.
enum class ReplicaState { pending, starting, standby, serving, draining, gone };

struct Replica {
  ReplicaState state = ReplicaState::starting;
  std::size_t node = 0;          // where it is, once it is not pending
  std::deque<SimTime> queue;     // arrival times of what waits
  std::vector<SimTime> running;  // of the batch in work
  bool busy = false;
  bool timer = false;  // of batching: one runs, for what waits first or for what came before it
  SimTime busy_from{};
  SimDuration busy_total{}, busy_at_look{};  // computed in all; at the autoscaler's last look
  SimTime looked_at{};                       // that look, or when it began to serve

  SimDuration busy_until(SimTime now) const {
    return busy ? busy_total + (now - busy_from) : busy_total;
  }
};

struct ServiceNode {
  SimTime requested{}, ready{};
  SimTime deleted = SimTime::max();  // max: it is kept
  SimTime pulled = SimTime::max();   // has the image from then on; max: nobody asked for it
  int used = 0, slot = 0;
  std::uint32_t stamp = 0;  // of its deletion
  bool leaving = false;     // the provider has said that it takes it back
  bool reclaimed = false;   // and did

  bool kept() const { return deleted == SimTime::max(); }
};

enum class ServiceEventKind {
  batch_done,
  batch_timer,
  shared_timer,
  replica_ready,
  node_unneeded,
  node_notice,
  node_reclaimed,
  look
};
struct ServiceEvent {
  SimTime at{};
  std::uint64_t sequence = 0;
  ServiceEventKind kind{};
  std::uint32_t entity = 0, stamp = 0;
  bool operator<(const ServiceEvent& o) const {
    return std::tie(o.at, o.sequence) < std::tie(at, sequence);
  }
};

/// Replicas and the nodes under them: what the autoscalers decide, carried out.
class Fleet {
 public:
  Fleet(const ServiceSetting& setting, std::uint64_t seed);

  std::vector<Replica> replicas;
  std::vector<ServiceNode> nodes;
  std::vector<std::uint32_t> serving;  // those that take requests, oldest first

  void push(SimTime at, ServiceEventKind kind, std::uint32_t entity, std::uint32_t stamp);
  bool has_events() const { return !events_.empty(); }
  SimTime next_at() const { return events_.empty() ? SimTime::max() : events_.top().at; }
  ServiceEvent pop();

  int desired() const { return desired_; }
  /// The first replicas, ready at once.
  void begin(SimTime now);
  /// As many as `desired`, and those on standby, are there or on their way.
  void scale(SimTime now, int desired);
  void on_ready(SimTime now, std::uint32_t replica);
  /// A replica that was told to go and has nothing left to do. One that is pending gets its place.
  void release(SimTime now, std::uint32_t replica);
  void on_unneeded(SimTime now, std::uint32_t node, std::uint32_t stamp);
  /// The provider will take the node back: its replicas finish what they have, others come.
  void on_notice(SimTime now, std::uint32_t node);
  /// It does: the replicas that had not finished by then, of which nothing is answered any more.
  std::vector<std::uint32_t> on_reclaimed(SimTime now, std::uint32_t node);
  /// Of each node that became ready in the period or before, request to deletion, as far as it lies
  /// in the period.
  std::vector<ServiceLease> leases(SimTime end) const;

 private:
  void create(SimTime now, bool at_once);
  /// Onto a node; false: none has room and there may be no more.
  bool place(SimTime now, std::uint32_t replica);
  void start(SimTime now, std::uint32_t replica);
  std::optional<std::size_t> node_with_room(SimTime now);
  std::size_t request_node(SimTime now);
  void add_node(SimTime requested, SimTime ready, int slot);
  void set_reclaim(std::size_t node);
  int lowest_free_slot() const;
  void place_pending(SimTime now);
  void remove_one(SimTime now);
  void choose_serving(SimTime now);

  const ServiceSetting& setting_;
  std::uint64_t seed_;
  std::optional<ReclaimLaw> reclaim_;
  std::priority_queue<ServiceEvent> events_;
  std::uint64_t sequence_ = 0;
  int desired_ = 0;
  // Those that are not gone, oldest first: a service that breathes for months has had many.
  std::vector<std::uint32_t> present_;
  std::vector<std::size_t> kept_;  // nodes
  int alive_ = 0;                  // replicas that are there or on their way and not told to go
};

}  // namespace reckon
