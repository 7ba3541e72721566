#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "sim/queue/job_times.h"

// Which GPUs of a cluster are held and free over time, of one replication.
namespace reckon {

/// Who held which GPUs of which nodes.
struct Occupancy {
  std::span<const Holding> holdings;  // all of the run
  std::span<const NodeGroup> groups;
  std::span<const NodeStay> stays{};  // where nodes come and go; empty: all are there all the time
  /// Where a job holds GPUs before all its pods have some; empty: it runs while it holds them.
  std::span<const RunSpan> runs{};
};

/// GPUs of a node that are taken or given back, or a node that comes or goes.
struct OccupancyChange {
  SimTime at{};
  int node = 0, gpus = 0;  // more in use
  int nodes = 0;           // 1: it comes; -1: it goes
};
/// In order of time; of equal times those of a job before those of a node.
std::vector<OccupancyChange> changes_of(const Occupancy& occupancy);

/// GPUs that are free: of nodes that are there. Where one node follows another at its place, both
/// may be there for a moment of no length.
class FreeGpus {
 public:
  explicit FreeGpus(const Occupancy& o) {
    for (const NodeGroup& g : o.groups)
      for (int k = 0; k < g.nodes; ++k) nodes_.push_back({g.gpus, 0, o.stays.empty() ? 1 : 0});
  }
  void apply(const OccupancyChange& c) {
    Node& node = nodes_[std::size_t(c.node)];
    node.in_use += c.gpus;
    node.there += c.nodes;
  }
  int of(std::size_t node) const {
    const Node& n = nodes_[node];
    return n.there > 0 ? std::max(0, n.gpus - n.in_use) : 0;
  }
  std::size_t nodes() const { return nodes_.size(); }
  /// Pods of so many GPUs each, wherever there is room.
  bool fits_pods(int pods, int gpus) const {
    for (std::size_t n = 0; n < nodes_.size() && gpus > 0; ++n) pods -= of(n) / gpus;
    return gpus == 0 || pods <= 0;
  }
  /// As FreeNodes::fits, on the nodes of `where`: whole ones of `largest` GPUs and a rest.
  bool fits(int gpus, int largest, const std::vector<bool>& where) const {
    int whole = 0, most = 0;  // free nodes; GPUs of another
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!where[n]) continue;
      if (of(n) == largest)
        ++whole;
      else
        most = std::max(most, of(n));
    }
    const int missing = whole - gpus / largest, rest = gpus % largest;
    return missing > 0 || (missing == 0 && most >= rest);
  }

 private:
  struct Node {
    int gpus = 0, in_use = 0, there = 0;
  };
  std::vector<Node> nodes_;
};

}  // namespace reckon
