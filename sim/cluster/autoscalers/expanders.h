#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/random.h"
#include "sim/scenario/plan.h"

// Which node group the cluster-autoscaler scales up, of those that may serve the same pods
// [kubernetes/autoscaler, cluster-autoscaler/FAQ.md, "What are Expanders?"; the packages of
// cluster-autoscaler/expander]. Pods have a node to themselves and ask for what the machine of
// their own pool can give.
namespace reckon {

/// A node group and what it can do for the pods: a node each.
struct ScaleUpOption {
  std::uint32_t pool = 0;
  int nodes = 0;
};

struct ScaleUpQuestion {
  const PlannedCluster& rented;
  std::uint32_t home = 0;      // the pool whose machine says what a pod asks for
  int cluster_nodes = 0;       // of the whole cluster, now
  std::vector<bool> existing;  // by pool: false: it would be made first
};

/// Priorities of the pools by the ConfigMap: the highest of those whose expressions are found in
/// the pool's name; nullopt: none is.
std::vector<std::optional<int>> pool_priorities(const std::vector<ExpanderPriority>& rows,
                                                const PlannedCluster& rented);

/// The options between which the chain does not decide any more; `options` are not empty.
///   most-pods    most pods served
///   least-waste  least share of vCPUs idle plus share of memory idle [expander/waste]
///   least-nodes  fewest nodes
///   price        price of the nodes x unfitness, twice that for a pool that does not exist.
///   Without
///                accelerators a node is the less fit the more its vCPUs differ from the preferred
///                1, 2, 4, 8, 16 or 32 of a cluster of at most 2, 6, 20, 60, 200 or more nodes, a
///                difference that counts less the more nodes are added [expander/price]
///   priority     highest priority; groups without one only where no group has one
///   random       one of them
std::vector<ScaleUpOption> best_options(const std::vector<Expander>& chain,
                                        std::vector<ScaleUpOption> options,
                                        const ScaleUpQuestion& question,
                                        const std::vector<std::optional<int>>& priorities,
                                        RandomStream& random);

/// vCPUs of the node that the price expander prefers in a cluster of so many nodes.
int preferred_vcpus(int cluster_nodes);

/// Node groups that differ in their zone at most [cluster-autoscaler/FAQ.md,
/// balance-similar-node-groups].
bool are_similar(const PlannedPool& a, const PlannedPool& b);

/// So many nodes of the groups, whose sizes are raised from the smallest; `room`: by group.
struct GroupSize {
  std::uint32_t pool = 0;
  int nodes = 0, room = 0;
};
std::vector<ScaleUpOption> balanced(std::vector<GroupSize> groups, int nodes);

}  // namespace reckon
