#include "sim/cluster/autoscalers/cluster_autoscaler.h"

#include <algorithm>

namespace reckon {

ClusterAutoscaler::ClusterAutoscaler(const PlannedCluster& cluster, const AutoscalerRules& rules,
                                     const LifeOptions& options)
    : rented_(cluster),
      times_(rules),
      most_at_once_(rules.max_nodes_per_scale_up),
      priorities_(pool_priorities(cluster.cluster_autoscaler
                                      ? cluster.cluster_autoscaler->priorities
                                      : std::vector<ExpanderPriority>{},
                                  cluster)),
      random_(options.seed, options.replication, kExpander, 0) {}

/// Pods that no node can take make the next scan find something to do.
SimTime ClusterAutoscaler::next_look(ScaledCluster& cluster) {
  const SimTime now = cluster.now();
  for (const Pool& pool : cluster.cluster().pools) {
    if (!pool.autoscaled || !cluster.takes_pods(pool) || addable(cluster, pool) <= 0) continue;
    const SimTime earliest = std::max({now, last_scan_ + SimDuration{1}, pool.backoff.until()});
    planned_ = std::min(planned_, times_.scan_at_or_after(earliest));
  }
  return planned_;
}

void ClusterAutoscaler::look(ScaledCluster& cluster) {
  planned_ = SimTime::max();
  last_scan_ = cluster.now();
  for (const std::uint32_t p : cluster.cluster().by_preference) {
    Pool& pool = cluster.cluster().pools[p];
    if (!pool.autoscaled || !cluster.takes_pods(pool)) continue;
    if (rented_.chooses_pools()) {
      if (!pool.preferred) choose_and_add(cluster, p);
    } else if (!pool.backoff.blocks(last_scan_)) {
      add(cluster, p, addable(cluster, pool));
    }
  }
}

int ClusterAutoscaler::room(ScaledCluster& cluster, const Pool& pool) const {
  return pool.plan->nodes_max - pool.size(cluster.cluster().slots(pool));
}

/// Nodes for the pods that wait. A job's ProvisioningRequest is for all of its pods
/// [cluster-autoscaler/FAQ.md, "How can I use ProvisioningRequest to run batch workloads"].
int ClusterAutoscaler::addable(ScaledCluster& cluster, const Pool& pool) const {
  const int most = std::min(room(cluster, pool), most_at_once_);
  if (most <= 0) return 0;
  return is_atomic(pool.plan->provisioning_model) ? cluster.missing_of_whole_jobs(pool, most)
                                                  : std::min(cluster.missing(pool), most);
}

void ClusterAutoscaler::add(ScaledCluster& cluster, std::uint32_t pool, int nodes) {
  if (nodes <= 0) return;
  last_scale_up_ = last_scan_;
  for (int k = 0; k < nodes; ++k) cluster.request_node(cluster.cluster().pools[pool]);
}

ScaleUpQuestion ClusterAutoscaler::question(ScaledCluster& cluster, std::uint32_t home) const {
  ScaleUpQuestion asked{.rented = rented_, .home = home};
  for (const Pool& pool : cluster.cluster().pools) {
    const int size = pool.size(cluster.cluster().slots(pool));
    asked.cluster_nodes += size;
    asked.existing.push_back(size > 0 || pool.plan->pool_creation.value.count() == 0);
  }
  return asked;
}

std::optional<ScaleUpOption> ClusterAutoscaler::choose(ScaledCluster& cluster, std::uint32_t home,
                                                       std::vector<ScaleUpOption> options) {
  std::vector<Expander> chain = rented_.cluster_autoscaler->expander;
  chain.push_back(Expander::random);  // "Multiple expanders": ties of the last are broken so
  return best_options(chain, std::move(options), question(cluster, home), priorities_, random_)
      .front();
}

/// One group, and those like it, a scan; pods that are left wait for the next.
void ClusterAutoscaler::choose_and_add(ScaledCluster& cluster, std::uint32_t home) {
  std::vector<ScaleUpOption> options;
  const auto consider = [&](std::uint32_t p) {
    const Pool& pool = cluster.cluster().pools[p];
    if (!pool.autoscaled || pool.backoff.blocks(last_scan_)) return;
    if (const int nodes = addable(cluster, pool); nodes > 0) options.push_back({p, nodes});
  };
  consider(home);
  for (const std::uint32_t p : cluster.cluster().pools[home].fallbacks) consider(p);
  if (options.empty()) return;
  const auto chosen = choose(cluster, home, options);
  if (!chosen) return;
  for (const ScaleUpOption& share : shares_of(cluster, *chosen, options))
    add(cluster, share.pool, share.nodes);
}

/// "--balance-similar-node-groups": the nodes are shared so that sizes become equal.
std::vector<ScaleUpOption> ClusterAutoscaler::shares_of(
    ScaledCluster& cluster, ScaleUpOption chosen, const std::vector<ScaleUpOption>& options) const {
  const auto& spec = rented_.cluster_autoscaler;
  const PlannedPool& best = rented_.pools[chosen.pool];
  if (!spec || !spec->balance_similar_node_groups || is_atomic(best.provisioning_model))
    return {chosen};
  std::vector<GroupSize> groups;
  int room_of_all = 0;
  for (const ScaleUpOption& option : options) {
    if (!are_similar(rented_.pools[option.pool], best)) continue;
    const Pool& pool = cluster.cluster().pools[option.pool];
    groups.push_back({option.pool, pool.size(cluster.cluster().slots(pool)), room(cluster, pool)});
    room_of_all += groups.back().room;
  }
  const int missing = cluster.missing(cluster.cluster().pools[chosen.pool]);
  return balanced(std::move(groups), std::min({missing, room_of_all, most_at_once_}));
}

/// Flex-start waits in its queue for as long as it takes.
SimTime ClusterAutoscaler::gives_up_at(const Pool& pool, SimTime requested) const {
  if (is_flex_start(pool.plan->provisioning_model) && !pool.plan->patience) return SimTime::max();
  return times_.provision_timeout(requested, pool.patience);
}

void ClusterAutoscaler::node_came(Pool& pool) {
  if (pool.provisioning == 0) pool.backoff.succeeded();
}

/// The group is left alone for a while; the group that is next in the order of priority takes the
/// pods.
void ClusterAutoscaler::gave_up(ScaledCluster& cluster, Pool& pool) {
  pool.backoff.failed(cluster.now(), times_);
  for (const std::uint32_t p : pool.fallbacks) cluster.cluster().pools[p].fallback_in_use = true;
}

/// Fallback nodes are not taken again before the preferred pool has been tried, unless
/// it has just been given up on.
bool ClusterAutoscaler::leaves_fallbacks(ScaledCluster& cluster) {
  if (rented_.chooses_pools()) return false;
  bool any = false;
  for (Pool& pool : cluster.cluster().pools) {
    if (!pool.preferred) continue;
    any = true;
    pool.fallback_in_use = cluster.cluster().pools[*pool.preferred].backoff.blocks(cluster.now());
  }
  return any;
}

SimTime ClusterAutoscaler::deletes_at(ScaledCluster& /*cluster*/, const Node& node) {
  return times_.scale_down_at(node.free_since, last_scale_up_);
}

std::unique_ptr<Autoscaler> make_cluster_autoscaler(const PlannedCluster& cluster,
                                                    const LifeOptions& options) {
  return std::make_unique<ClusterAutoscaler>(cluster, cluster.autoscaler, options);
}

}  // namespace reckon
