#pragma once
#include <span>
#include <vector>

#include "sim/step/collectives.h"

// Pieces that the collectives' activity graphs are built of. Nothing outside collectives*.cpp
// includes this.
namespace reckon {

/// Links of a fabric, every rank's and node's own.
struct FabricLinks {
  std::vector<LinkId> peer_out, peer_in;  // by rank
  std::vector<LinkId> nic_out, nic_in;    // by node
};
FabricLinks add_links(Network& network, const Fabric& f);

/// Path from rank to rank: over peer links inside a node, over both NICs between nodes.
PathId add_route(Network& network, const FabricLinks& links, const Fabric& f, int from, int to);
bool same_node(const Fabric& f, int a, int b);

/// Ring over `members`, each sending `chunk` to the next in each of `rounds` rounds; a rank sends
/// on what it received in the round before. Waits for `start`; returns the last round's activities,
/// in the order of members.
std::vector<ActivityId> add_ring(NetworkProblem& p, const FabricLinks& links, const Fabric& f,
                                 std::span<const int> members, Bytes chunk, int rounds,
                                 std::span<const ActivityId> start);

/// One representative hop of each kind; the round ends with the slower one.
void add_folded_hop(NetworkProblem& p, BytesPerSecond bandwidth, Seconds latency, Bytes chunk,
                    std::uint32_t sharing = 1);

std::vector<int> all_ranks(const Fabric& f);

/// Most flows of half the data that enter (or leave) one node in the reduction phase of both trees
/// of a double binary tree together.
int busiest_tree_node(int n);
int ceil_log2(int n);

}  // namespace reckon
