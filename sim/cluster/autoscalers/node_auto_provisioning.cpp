#include <algorithm>

#include "sim/cluster/autoscalers/cluster_autoscaler.h"
#include "sim/cluster/never.h"

// GKE's cluster autoscaler where it makes the node pools [cloud.google.com/kubernetes-engine/docs,
// "About node pool auto-creation", "About custom ComputeClasses"]. It is the cluster-autoscaler
// with the price expander. A pool is one machine and one way of buying it, made for its first node.
namespace reckon {
namespace {

AutoscalerRules rules_of(const PlannedCluster& cluster) {
  AutoscalerRules rules = cluster.autoscaler;
  const auto& compute_class = cluster.node_auto_provisioning->compute_class;
  if (compute_class && compute_class->consolidation_delay)
    rules.scale_down_unneeded_time = *compute_class->consolidation_delay;
  return rules;
}

class NodeAutoProvisioning final : public ClusterAutoscaler {
 public:
  NodeAutoProvisioning(const PlannedCluster& cluster, const LifeOptions& options)
      : ClusterAutoscaler(cluster, rules_of(cluster), options),
        spec_(*cluster.node_auto_provisioning),
        migrates_(spec_.compute_class && spec_.compute_class->optimize_rule_priority &&
                  spec_.safe_to_evict) {}

  void gave_up(ScaledCluster& cluster, Pool& pool) override {
    ClusterAutoscaler::gave_up(cluster, pool);
    replacing_.reset();
  }
  SimTime deletes_at(ScaledCluster& cluster, const Node& node) override {
    return node.draining ? cluster.now() : ClusterAutoscaler::deletes_at(cluster, node);
  }
  void node_went(const Node& node, SimTime /*now*/) override {
    if (node.replaced) replacing_.reset();
  }
  bool evicts() const override { return migrates_; }
  SimTime next_disruption(ScaledCluster& cluster) override;
  void disrupt(ScaledCluster& cluster) override;

 protected:
  int room(ScaledCluster& cluster, const Pool& pool) const override;
  std::optional<ScaleUpOption> choose(ScaledCluster& cluster, std::uint32_t home,
                                      std::vector<ScaleUpOption> options) override;

 private:
  bool has_capacity(ScaledCluster& cluster, Pool& pool);
  std::vector<std::uint32_t> preferred_to(ScaledCluster& cluster, const Node& node) const;

  const NodeAutoProvisioningSpec& spec_;
  const bool migrates_;
  std::optional<std::uint32_t> replacing_;  // the one node that is being replaced
};

double amount_of(const PlannedPool& pool, const std::string& resource) {
  if (resource == "cpu") return pool.machine.vcpus;
  if (resource == "memory") return pool.machine.memory.value.v / 1e9;
  const bool has = pool.accelerator && pool.accelerator->name == resource;
  return has ? pool.accelerators_per_node : 0;
}

/// "Resource limits for clusters": what all nodes of the cluster have counts, those of pools that
/// users made too. A pool of pods is as large as its nodes.max, whichever machines it gets.
int NodeAutoProvisioning::room(ScaledCluster& cluster, const Pool& pool) const {
  Cluster& state = cluster.cluster();
  int nodes = pool.empty.count();
  for (const ResourceLimit& limit : spec_.resource_limits) {
    const double each = amount_of(*pool.plan, limit.resource_type);
    if (each <= 0) continue;
    double used = 0;
    for (const Pool& other : state.pools)
      used += amount_of(*other.plan, limit.resource_type) * other.size(state.slots(other));
    nodes = std::min(nodes, int(std::max(0.0, (limit.maximum - used + 1e-6) / each)));
  }
  return nodes;
}

/// Compute Engine answers at once that a zone has no spot capacity; the group backs off
/// [cluster-autoscaler, handling of instance creation errors].
bool NodeAutoProvisioning::has_capacity(ScaledCluster& cluster, Pool& pool) {
  if (cluster.cluster().given_from(pool, cluster.now()) <= cluster.now()) return true;
  pool.backoff.failed(cluster.now(), times());
  return false;
}

/// "About custom ComputeClasses": the rules in their order; of one rule's machines those that the
/// price expander prefers.
std::optional<ScaleUpOption> NodeAutoProvisioning::choose(ScaledCluster& cluster,
                                                          std::uint32_t home,
                                                          std::vector<ScaleUpOption> options) {
  const auto rank = [&](const ScaleUpOption& o) { return rented().pools[o.pool].rank; };
  while (!options.empty()) {
    const int first = rank(*std::ranges::min_element(options, {}, rank));
    std::vector<ScaleUpOption> of_rule;
    std::ranges::copy_if(options, std::back_inserter(of_rule),
                         [&](const ScaleUpOption& o) { return rank(o) == first; });
    const ScaleUpOption best =
        best_options({Expander::price}, of_rule, question(cluster, home), {}, random()).front();
    if (has_capacity(cluster, cluster.cluster().pools[best.pool])) return best;
    std::erase_if(options, [&](const ScaleUpOption& o) { return o.pool == best.pool; });
  }
  return std::nullopt;
}

/// Pools of the rules before the node's own.
std::vector<std::uint32_t> NodeAutoProvisioning::preferred_to(ScaledCluster& cluster,
                                                              const Node& node) const {
  if (!node.held || node.state != NodeState::ready || node.draining || node.replaced) return {};
  const PlannedPool& own = rented().pools[node.pool];
  if (own.rank == 0) return {};
  const auto home = own.fallback_for ? std::uint32_t(*own.fallback_for) : node.pool;
  std::vector<std::uint32_t> pools{home};
  for (const std::uint32_t p : cluster.cluster().pools[home].fallbacks) pools.push_back(p);
  std::erase_if(pools, [&](std::uint32_t p) { return rented().pools[p].rank >= own.rank; });
  std::ranges::stable_sort(pools, {}, [&](std::uint32_t p) { return rented().pools[p].rank; });
  return pools;
}

/// "activeMigration.optimizeRulePriority": a node of a rule that is preferred is made, the pods
/// move, the old node goes; one after the other.
SimTime NodeAutoProvisioning::next_disruption(ScaledCluster& cluster) {
  if (!migrates_ || replacing_) return SimTime::max();
  const SimTime now = cluster.now();
  SimTime at = SimTime::max();
  for (const Node& node : cluster.cluster().nodes)
    for (const std::uint32_t p : preferred_to(cluster, node)) {
      Pool& pool = cluster.cluster().pools[p];
      if (room(cluster, pool) <= 0) continue;
      const SimTime given = cluster.cluster().given_from(pool, now);
      const SimTime soonest = std::max({now + SimDuration{1}, given, pool.backoff.until()});
      at = std::min(at, times().scan_at_or_after(soonest));
    }
  return at;
}

void NodeAutoProvisioning::disrupt(ScaledCluster& cluster) {
  if (replacing_) return;
  for (Node& node : cluster.cluster().nodes)
    for (const std::uint32_t p : preferred_to(cluster, node)) {
      Pool& pool = cluster.cluster().pools[p];
      if (room(cluster, pool) <= 0 || pool.backoff.blocks(cluster.now())) continue;
      if (!has_capacity(cluster, pool)) continue;
      replacing_ = cluster.cluster().index_of(node);
      return cluster.replace_node(node, pool);
    }
}

}  // namespace

std::unique_ptr<Autoscaler> make_node_auto_provisioning(const PlannedCluster& cluster,
                                                        const LifeOptions& options) {
  return std::make_unique<NodeAutoProvisioning>(cluster, options);
}

}  // namespace reckon
