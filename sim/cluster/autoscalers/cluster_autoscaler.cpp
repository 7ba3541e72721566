#include <algorithm>

#include "sim/cluster/autoscaler.h"
#include "sim/cluster/autoscaler_times.h"

// The Kubernetes cluster-autoscaler [kubernetes/autoscaler, cluster-autoscaler/FAQ.md]. Each pool
// is a node group that asks for its own nodes; fallback pools follow its priority expander.
namespace reckon {
namespace {

class ClusterAutoscaler final : public Autoscaler {
 public:
  explicit ClusterAutoscaler(const PlannedCluster& cluster)
      : times_(cluster.autoscaler), most_at_once_(cluster.autoscaler.max_nodes_per_scale_up) {}

  /// Pods that no node can take make the next scan find something to do.
  SimTime next_look(ScaledCluster& cluster) override {
    const SimTime now = cluster.now();
    for (const Pool& pool : cluster.cluster().pools) {
      if (!pool.autoscaled || !cluster.takes_pods(pool) || cluster.missing(pool) <= 0) continue;
      if (room(cluster, pool) <= 0) continue;
      const SimTime earliest = std::max({now, last_scan_ + SimDuration{1}, pool.backoff.until()});
      planned_ = std::min(planned_, times_.scan_at_or_after(earliest));
    }
    return planned_;
  }

  void look(ScaledCluster& cluster) override {
    planned_ = SimTime::max();
    last_scan_ = cluster.now();
    for (const std::uint32_t p : cluster.cluster().by_preference) {
      Pool& pool = cluster.cluster().pools[p];
      if (!pool.autoscaled || !cluster.takes_pods(pool) || pool.backoff.blocks(last_scan_))
        continue;
      const int nodes = std::min({cluster.missing(pool), room(cluster, pool), most_at_once_});
      if (nodes <= 0) continue;
      last_scale_up_ = last_scan_;
      for (int k = 0; k < nodes; ++k) cluster.request_node(pool);
    }
  }

  SimTime gives_up_at(const Pool& pool, SimTime requested) const override {
    return times_.provision_timeout(requested, pool.patience);
  }
  void node_came(Pool& pool) override {
    if (pool.provisioning == 0) pool.backoff.succeeded();
  }
  /// The group is left alone for a while; the group that is next in the order of priority takes the
  /// pods.
  void gave_up(ScaledCluster& cluster, Pool& pool) override {
    pool.backoff.failed(cluster.now(), times_);
    for (const std::uint32_t p : pool.stand_ins) cluster.cluster().pools[p].stands_in = true;
  }
  /// Nodes that only stand in are not taken again before the preferred pool has been tried, unless
  /// it has just been given up on.
  bool leaves_fallbacks(ScaledCluster& cluster) override {
    bool any = false;
    for (Pool& pool : cluster.cluster().pools) {
      if (!pool.preferred) continue;
      any = true;
      pool.stands_in = cluster.cluster().pools[*pool.preferred].backoff.blocks(cluster.now());
    }
    return any;
  }

  SimTime deletes_at(ScaledCluster& /*cluster*/, const Node& node) override {
    return times_.scale_down_at(node.free_since, last_scale_up_);
  }

 private:
  static int room(ScaledCluster& cluster, const Pool& pool) {
    return pool.plan->nodes_max - pool.size(cluster.cluster().slots(pool));
  }

  const AutoscalerTimes times_;
  const int most_at_once_;
  SimTime planned_ = SimTime::max();
  SimTime last_scan_ = SimTime::min(), last_scale_up_ = SimTime::min();
};

}  // namespace

std::unique_ptr<Autoscaler> make_cluster_autoscaler(const PlannedCluster& cluster) {
  return std::make_unique<ClusterAutoscaler>(cluster);
}

}  // namespace reckon
