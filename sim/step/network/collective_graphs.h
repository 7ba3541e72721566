#pragma once
#include <span>
#include <vector>

#include "sim/step/network/collectives.h"

// Pieces that the collectives' activity graphs are built of. Nothing outside collectives*.cpp
// includes this.
namespace reckon {

/// Links of a fabric, every rank's and node's own.
struct FabricLinks {
  std::vector<LinkId> peer_out, peer_in;  // by rank
  std::vector<LinkId> nic_out, nic_in;    // by node
  std::vector<LinkId> leaf_out, leaf_in;  // by leaf, where there is a spine
};
FabricLinks add_links(Network& network, const Fabric& f);

/// Path from rank to rank: over peer links inside a node, over both NICs between nodes, and over
/// the uplinks of their leaves where these differ.
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
/// The same of one leaf of `leaf` nodes: flows whose other end is under another leaf.
int busiest_tree_leaf(int n, int leaf);
int ceil_log2(int n);

/// What a pipelined transfer waits besides its bytes over the bandwidth: hops of `latency` in all,
/// then the pieces of a message that takes `transfer` as a whole. With k hops, m pieces and latency
/// a a piece goes on in (k + m) (a + transfer / m) [Sanders, Speck, Traeff 2009, Sec. 2]; the best
/// m makes it (sqrt(k a) + sqrt(transfer))^2 = k a + transfer + 2 sqrt(k a transfer).
Seconds pipelined_latency(Seconds latency, Seconds transfer);

/// Of a phase (reduction or broadcast) of the double binary tree: the latency of its hops, and the
/// time of its bytes on the busiest link.
struct TreePhase {
  Seconds latency{}, transfer{};
};
TreePhase tree_phase(const Fabric& f, Bytes size, int flows_of_busiest_node);

/// Flows of an all-to-all that the peer link of a rank carries from it: to its own node, and to
/// other nodes by way of the rank there that is on the right rail.
double peer_flows(const Fabric& f);
/// Flows of an all-to-all that leave one leaf.
double flows_out_of_leaf(const Fabric& f);

}  // namespace reckon
