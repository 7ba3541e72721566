#pragma once
#include <span>
#include <vector>

#include "sim/step/network/collectives.h"
#include "sim/step/network/fabric_graph.h"

// Pieces that the collectives' activity graphs are built of. Nothing outside collective*.cpp,
// all_reduces.cpp and torus*.cpp includes this.
namespace reckon {

/// Links of a fabric, every rank's and node's own, and how they connect the ranks.
struct FabricLinks {
  std::vector<LinkId> nic_out, nic_in;    // by node
  std::vector<LinkId> leaf_out, leaf_in;  // by leaf, where there is a spine
  FabricGraph graph;
  std::vector<FabricGraph::Device> rank;  // by rank
};
FabricLinks add_links(Network& network, const Fabric& f, BytesPerSecond peer);
inline FabricLinks add_links(Network& network, const Fabric& f) {
  return add_links(network, f, f.peer);
}

/// Path from rank to rank, the shortest: over peer links inside a node, over both NICs between
/// nodes, and over the uplinks of their leaves where these differ.
PathId add_route(Network& network, FabricLinks& links, int from, int to);
/// First to rank `by` of the same node, then on to a rank of another: over the NIC that `from` and
/// `by` share.
PathId add_route(Network& network, FabricLinks& links, int from, int by, int to);
bool same_node(const Fabric& f, int a, int b);

/// Rounds of a ring, in each of which every rank sends `chunk` to the next after a delay.
struct RingRounds {
  Bytes chunk{};
  Seconds peer_delay{}, nic_delay{};  // to a rank of the same node, of another one
  int rounds = 0;
  BytesPerSecond peer{};  // of the links inside a node
};
/// Of an all-reduce and of an all-gather of `size` through all ranks. Measured: collective_wait()
/// in equal parts; else a round waits for the one before, and its hops for their latency.
RingRounds all_reduce_rounds(const Fabric& f, Bytes size);
RingRounds all_gather_rounds(const Fabric& f, Bytes size);
/// That of the slowest hop, as often as there are rounds.
Seconds time_of(const Fabric& f, const RingRounds& ring);
/// The same as a graph of all ranks, or one representative hop of each kind.
void add_rounds(NetworkProblem& p, const RingRounds& ring, const Fabric& f, bool fold);

/// Ring over `members`; a rank sends on what it received in the round before. Waits for `start`;
/// returns the last round's activities, in the order of members.
std::vector<ActivityId> add_ring(NetworkProblem& p, FabricLinks& links, const Fabric& f,
                                 std::span<const int> members, const RingRounds& ring,
                                 std::span<const ActivityId> start);

/// One representative hop of each kind; the round ends with the slower one.
void add_folded_hop(NetworkProblem& p, BytesPerSecond bandwidth, Seconds latency, Bytes chunk,
                    std::uint32_t sharing = 1);

/// A phase that is the call of the collective alone, where it takes time.
void add_call(Collective& c, const Fabric& f);

std::vector<int> all_ranks(const Fabric& f);

/// Most flows of half the data that enter (or leave) one node in the reduction phase of both trees
/// of a double binary tree together.
int busiest_tree_node(int n);
/// The same of one leaf of `leaf` nodes: flows whose other end is under another leaf.
int busiest_tree_leaf(int n, int leaf);
int ceil_log2(int n);

/// Of a phase (reduction or broadcast) of the double binary tree: half of what the collective
/// waits, and the time of its bytes on the busiest link.
struct TreePhase {
  Seconds latency{}, transfer{};
};
TreePhase tree_phase(const Fabric& f, Bytes size, int flows_of_busiest_node);

/// When the flows of an all-to-all of `size` begin. Where peer links forward to other rails, all of
/// it waits for both.
struct ExchangeStart {
  Seconds inside{}, between{};
};
ExchangeStart exchange_start(const Fabric& f, Bytes size);

/// Flows of an all-to-all that the peer link of a rank carries from it: to its own node, and to
/// other nodes by way of the rank there that is on the right rail.
double peer_flows(const Fabric& f);  // a count
/// Flows of an all-to-all that leave one leaf.
double flows_out_of_leaf(const Fabric& f);  // a count

}  // namespace reckon
