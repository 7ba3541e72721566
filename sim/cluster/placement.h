#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/job_request.h"
#include "sim/scenario/plan.h"

// Which nodes a job asks for: its gang. All of them are needed before the first step.
namespace reckon {

/// Whether the cluster-autoscaler manages the pool.
bool is_autoscaled(const PlannedCluster& cluster, const PlannedPool& pool);
/// Nodes that the pool can have at most.
int node_limit(const PlannedCluster& cluster, const PlannedPool& pool);

struct PoolShare {
  int nodes = 0;             // that the job needs of this pool
  int workers = 0;           // on them
  int workers_per_node = 0;  // at most; the last node may hold fewer
  bool servers = false;      // the nodes hold parameter servers
  bool chief = false;        // the chief is on the first of them that is placed
  bool beside = false;       // the nodes evaluate checkpoints: training goes on without one
  /// Another pool's nodes may replace these; or these another's, and then all that is said
  /// above is said there.
  std::vector<std::size_t> fallbacks;
  std::optional<std::size_t> fallback_for;
};

struct Placement {
  std::vector<PoolShare> pools;  // by pool of the cluster
  std::string impossible;        // why the job can never be placed; "": it can
};

/// Workers go to the chief's pool first (the chief trains too), then to the pools of workers, as
/// many on a node as its accelerators allow; a worker without accelerators takes a node, or shares
/// one where there are too few. Parameter servers spread over their pools' nodes; without such a
/// pool the chief's host holds the variables. Evaluators have all nodes of their pools, beside the
/// training, from its start to its end.
Placement place_gang(const PlannedCluster& cluster, const JobRequest& job);

}  // namespace reckon
