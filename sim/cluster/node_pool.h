#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/random.h"
#include "sim/cluster/autoscaler_times.h"
#include "sim/cluster/disruptions.h"
#include "sim/cluster/life/life.h"

// Nodes and the pools that they stand in: state and counts. What makes them change is in
// life/nodes.cpp.
namespace reckon {

/// Slots of a pool, lowest first.
class SlotSet {
 public:
  explicit SlotSet(std::size_t slots) : words_((slots + 63) / 64) {}
  void insert(std::uint32_t s) {
    words_[s / 64] |= bit(s);
    ++count_;
  }
  void erase(std::uint32_t s) {
    words_[s / 64] &= ~bit(s);
    --count_;
  }
  int count() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::uint32_t first() const {
    std::size_t w = 0;
    while (words_[w] == 0) ++w;
    return static_cast<std::uint32_t>(w * 64 +
                                      static_cast<std::size_t>(std::countr_zero(words_[w])));
  }

 private:
  static std::uint64_t bit(std::uint32_t s) { return std::uint64_t{1} << (s % 64); }
  std::vector<std::uint64_t> words_;
  int count_ = 0;
};

enum class NodeState : std::uint8_t {
  none,          // the slot is empty
  provisioning,  // requested
  ready,
  leaving,   // the job has left it; it is about to be taken
  drained,   // the job has left it; maintenance is about to begin, after which the node returns
  away,      // under maintenance
  repairing  // after a failure
};

struct Node {
  std::uint32_t pool = 0, slot = 0;
  NodeState state = NodeState::none;
  bool held = false;      // by a job
  std::uint32_t job = 0;  // by which
  bool chief = false;     // the job's chief is on it
  bool joining = false;   // its workers initialise while the others train
  bool cold = true;       // has not pulled the image yet
  bool member = false;    // elastic: the job's workers on it train, or start to
  bool deletion_planned = false;
  bool draining = false;                  // takes no more pods; goes when it has none
  bool replaced = false;                  // a node that is coming takes its place
  std::optional<std::uint32_t> replaces;  // this node is coming for that one, while in that use:
  std::uint32_t replaces_use = 0;
  int workers = 0;  // of the job
  // An event counts while it carries the stamp of what it is about.
  std::uint32_t lease = 0;    // from request to deletion
  std::uint32_t up = 0;       // from ready to the next maintenance or failure
  std::uint32_t use = 0;      // from one holder to the next
  std::uint32_t crashes = 0;  // failures that left it up
  std::uint32_t request = 0;  // of the pool, by which it was asked for
  bool was_ready = false;     // in this lease
  SimTime requested{};        // and there: behind the shortage in which it was asked for
  SimTime state_since{}, free_since{};
  SimTime goes_at = SimTime::max();       // the planned reclaim or the end of its run
  SimTime run_ends = SimTime::max();      // its longest run is over
  SimTime lease_ends = SimTime::max();    // at the latest: its reclaim is drawn when it comes
  SimDuration away{}, busy{}, standby{};  // of this lease
  SimDuration start_up{};                 // left to do, from when the job starts on it
  SimDuration job_active_at_hold{};
  RandomStream provisioning, reclaim, maintenance, failure;
};

struct Pool {
  const PlannedPool* plan = nullptr;
  bool autoscaled = false;
  bool reclaimable = false;
  std::size_t trace_offset = 0;  // of slot 0 in the plan's reclaim trace
  std::uint32_t first_node = 0;  // index of slot 0
  std::uint32_t entity = 0;      // of slot 0, in random streams: node_entity()
  // A fallback pool takes pods from when the nodes of its preferred pool did not come until the job
  // stops and tries that pool again. Under an autoscaler that chooses, it always does.
  std::optional<std::uint32_t> preferred;  // indices of pools
  std::vector<std::uint32_t> fallbacks;
  bool fallback_in_use = false;  // its nodes take pods now
  SimDuration patience{};        // with a node that was asked for
  DelayLaw provisioning_delay;
  Seconds failure_mean{};            // of a node; 0: it never fails
  SlotSet empty, free;               // free: ready, the job does not hold it
  std::vector<std::uint32_t> freed;  // slots that became free since deletions were last planned
  int provisioning = 0;
  int returning = 0;  // drained, away or repairing
  NodeGroupBackoff backoff;
  // Nodes that are asked for at one time are one request; of flex-start it waits for capacity.
  std::uint32_t requests = 0;
  SimTime request_at = SimTime::min(), request_given{};
  SimTime created_at{};      // of a pool that is made for its first node
  NodeTime node_time;        // billed
  NodeTime reserved_time;    // of it, at the reservation's price
  bool outlived = false;     // its block's machines went before the last job was done
  RandomStream maintenance;  // where all nodes have it together
  SimTime maintenance_begins{};
  /// Spot capacity of its own; nullopt: the cluster's.
  std::optional<Shortages> market;

  int size(int slots) const { return slots - empty.count(); }
  /// Nodes, present or coming, that can take a pod.
  int for_pods() const { return free.count() + provisioning + returning; }
};

/// All pools and nodes that may be rented, empty, with the random streams of this replication.
struct Cluster {
  Cluster(const PlannedCluster& rented, const LifeOptions& options);
  std::vector<Pool> pools;
  std::vector<Node> nodes;
  /// Indices of pools: fallback pools last.
  std::vector<std::uint32_t> by_preference;
  /// When a spot node that is asked for now can be given.
  Shortages shortages;
  /// When a node of the pool that is asked for now begins to come: now, or at the end of a
  /// shortage.
  SimTime given_from(Pool& pool, SimTime now) {
    if (!pool.reclaimable) return now;
    return pool.market ? pool.market->over_at(now) : shortages.over_at(now);
  }
  int slots(const Pool& pool) const;
  Pool& pool_of(const Node& node) { return pools[node.pool]; }
  std::uint32_t index_of(const Node& node) const {
    return static_cast<std::uint32_t>(&node - nodes.data());
  }
};

}  // namespace reckon
