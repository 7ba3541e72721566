#pragma once
#include <cstdint>
#include <memory>

#include "sim/cluster/node_pool.h"

// What makes and deletes the nodes of pools that scale. An autoscaler is one file with a class and
// a function that makes it, and a row in the table of autoscaler.cpp.
namespace reckon {

/// The cluster as its autoscaler sees it, and what it may ask of it.
class ScaledCluster {
 public:
  virtual SimTime now() const = 0;
  virtual Cluster& cluster() = 0;
  /// Pods for the pool, or for the one whose fallback it is, that no node, present or coming, can
  /// take. Negative: nodes that have no pod.
  virtual int missing(const Pool& pool) const = 0;
  /// Of them, those of whole jobs, first submitted first, for which `room` nodes are enough.
  virtual int missing_of_whole_jobs(const Pool& pool, int room) const = 0;
  /// Do the pool's nodes take pods now? A fallback pool's do while it is in use.
  virtual bool takes_pods(const Pool& pool) const = 0;
  /// Into the lowest empty slot; the node comes after the pool's provisioning delay.
  virtual Node& request_node(Pool& pool) = 0;
  /// Asks for a node of `pool`. When it is ready, the pods of `old` are evicted and `old` goes.
  virtual void replace_node(Node& old, Pool& pool) = 0;

 protected:
  ~ScaledCluster() = default;
};

/// Decides, and keeps what it must remember. All times are those of the simulation; max: never.
class Autoscaler {
 public:
  virtual ~Autoscaler() = default;

  // ---- up
  /// When it next looks for pods without a node. Asked after every event while jobs want nodes.
  virtual SimTime next_look(ScaledCluster& cluster) = 0;
  virtual void look(ScaledCluster& cluster) = 0;
  /// When it withdraws a request of that time, if the node has not come by then.
  virtual SimTime gives_up_at(const Pool& pool, SimTime requested) const = 0;
  virtual void node_came(Pool& pool) = 0;
  /// Of a node of the pool: it did not come, or there is nothing left that it would replace.
  virtual void gave_up(ScaledCluster& cluster, Pool& pool) = 0;
  /// A job stopped and waits for nodes. True: it leaves the nodes of fallback pools first.
  virtual bool leaves_fallbacks(ScaledCluster& cluster) = 0;

  // ---- down
  /// When it deletes a node without pods. Asked when the node becomes free, and again at that time:
  /// only then is an answer that is not later the deletion.
  virtual SimTime deletes_at(ScaledCluster& cluster, const Node& node) = 0;
  virtual void node_went(const Node& /*node*/, SimTime /*now*/) {}

  // ---- nodes with pods
  /// When it next looks for a node to replace; the time of an earlier answer if that is sooner.
  virtual SimTime next_disruption(ScaledCluster& /*cluster*/) { return SimTime::max(); }
  virtual void disrupt(ScaledCluster& /*cluster*/) {}
  /// When a node that came now is drained for its age.
  virtual SimTime expires_at(const Node& /*node*/, SimTime /*now*/) const { return SimTime::max(); }
  /// How long a drain waits for pods that may not be evicted.
  virtual SimDuration drain_patience(const Node& /*node*/) const { return SimDuration::max(); }
  /// Does it drain a node at the notice of a reclaim?
  virtual bool drains_at_notice(const Node& /*node*/) const { return false; }
  /// May it evict running pods?
  virtual bool evicts() const { return false; }
};

/// `cluster` outlives it. `options` have the seed of what it draws.
std::unique_ptr<Autoscaler> make_autoscaler(const PlannedCluster& cluster,
                                            const LifeOptions& options);

// ---- one function a kind, in a file of its name
std::unique_ptr<Autoscaler> make_cluster_autoscaler(const PlannedCluster& cluster,
                                                    const LifeOptions& options);
std::unique_ptr<Autoscaler> make_karpenter(const PlannedCluster& cluster,
                                           const LifeOptions& options);
std::unique_ptr<Autoscaler> make_node_auto_provisioning(const PlannedCluster& cluster,
                                                        const LifeOptions& options);
std::unique_ptr<Autoscaler> make_slurm_power_saving(const PlannedCluster& cluster,
                                                    const LifeOptions& options);

}  // namespace reckon
