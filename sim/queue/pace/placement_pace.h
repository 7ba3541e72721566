#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/job_request.h"
#include "sim/queue/free_nodes.h"

// How fast a job runs on the nodes that it has.
namespace reckon {

/// Work done in a second, over that of pace 1, for which a job's length is said. By pool, then by
/// how many leaves of the network its nodes are of (index 0: one leaf; the last counts for more).
/// A gang waits for its slowest node at each step: over several pools the lowest pace counts.
struct PlacementPace {
  std::vector<std::vector<double>> by_pool;  // factors
};

/// Where nodes are: their pool, and their leaf, which is of one pool.
struct NodePlaces {
  std::vector<std::int32_t> pool, leaf;  // by node
};
/// Nodes of a leaf stand one behind the other in their pool, which is the groups of one name. 0
/// nodes: each pool is one leaf, and all of them are the same.
NodePlaces node_places(std::span<const NodeGroup> groups, std::span<const std::string> names,
                       int nodes_per_leaf);

/// Of the jobs of a queue; work is in time at pace 1.
class JobPaces {
 public:
  /// All three outlive it.
  JobPaces(std::span<const JobRequest> jobs, std::span<const PlacementPace> paces,
           const NodePlaces& places)
      : jobs_(jobs), paces_(paces), places_(places) {}

  double pace(std::size_t job, std::span<const NodePart> on) const;  // a factor, as PlacementPace's
  /// How long the nodes take for the work.
  SimDuration time(std::size_t job, std::span<const NodePart> on, SimDuration work) const;
  /// The work that they do in that time.
  SimDuration work(std::size_t job, std::span<const NodePart> on, SimDuration time) const;

 private:
  std::span<const JobRequest> jobs_;
  std::span<const PlacementPace> paces_;
  const NodePlaces& places_;
};

}  // namespace reckon
