#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/queue/free_nodes.h"
#include "sim/scenario/spec/scheduler.h"

// Kueue's topology-aware scheduling: nodes of a job in one block, rack or other domain
// (https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling).
namespace reckon {

/// What a job asks for: podset-required-topology or podset-preferred-topology.
struct TopologyRequest {
  std::string_view level;  // the label of nodes; "": nothing
  bool required = false;
};

/// The domains of each pool whose flavor has a topology. A domain of a level is so many nodes of
/// the pool one behind the other, a domain of the next level a part of one.
class KueueTopology {
 public:
  /// `pools`: names by cell of `groups`. Needs flavors that are pools, topologies that exist, and
  /// levels each of which is a multiple of the next.
  KueueTopology(const KueueSpec& kueue, std::span<const NodeGroup> groups,
                std::span<const std::string> pools);

  /// Whether the pool has the level; that nothing is asked for every pool has.
  bool has_level(int pool, std::string_view level) const;

  /// Free GPUs of the pool for the job, not taken yet; nullopt: they are not there. The job is pods
  /// of a whole node each, and one of the rest. Required: within one domain of the level.
  /// Preferred: the same, else within one of the level above, and so on, else over as few domains
  /// of the widest level as suffice. Of the domains that suffice that with the fewest free nodes is
  /// taken; within it each level below takes the domains with the most free nodes first, and for
  /// the last pods the one with the fewest that suffice ("BestFit", Kueue's
  /// tas_flavor_snapshot.go). Looks at every node of the pool.
  std::optional<std::vector<NodePart>> place(const FreeNodes& nodes, int pool, int gpus,
                                             const TopologyRequest& request) const;

 private:
  struct Pool {
    std::vector<int> nodes;              // numbers of nodes
    int gpus = 0;                        // of the largest
    std::vector<KueueLevelSpec> levels;  // the widest first; empty: no topology
  };
  std::vector<Pool> pools_;
};

}  // namespace reckon
