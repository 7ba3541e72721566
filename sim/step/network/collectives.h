#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/step/network/network.h"

// All-reduce as flows over links: each algorithm builds the activity graph that a NetworkModel
// times. Folded graphs use the symmetry of the ranks (one representative of flows that are alike,
// one round of rounds that repeat); `fold = false` builds every rank, link and round, and takes the
// same time (docs/MODELS.md, "Collectives"). M: bytes to reduce on every rank; n = N G ranks on N
// nodes of G; B: bandwidth of a link, one direction; a: latency.
namespace reckon {

/// A network and what happens on it, `repeat` times in a row.
struct NetworkProblem {
  Network network;
  ActivityGraph graph;
  double repeat = 1;  // a count
};
/// Latest finish of any activity, times `repeat`.
Seconds makespan(const NetworkProblem& problem, const NetworkModel& model);

/// Phases one after the other.
struct Collective {
  std::vector<NetworkProblem> phases;
  int steps = 0;         // hops that follow one another: what latency counts
  Bytes sent_by_rank{};  // on the wire, by the rank that sends most
};
Seconds makespan(const Collective& collective, const NetworkModel& model);

/// Chips that a group of ranks has along one axis of a torus.
struct TorusAxis {
  int chips = 1;
  int apart = 1;        // links between one and the next; so many such groups share them
  bool closed = false;  // the last one's next is the first
};

/// What a collective between accelerators takes beside its hops and its bytes; none where nobody
/// measured it, and for processes on CPUs.
struct CollectiveLaw {
  Seconds call{};  // once a collective: kernels that start on all ranks, the first handshake
  std::optional<double> pieces;  // c, no unit, of L + w + c sqrt(L w): collective_wait()
};
CollectiveLaw law_of(const LinkClass& link);

/// Ranks on nodes. A link's numbers are effective ones: printed bandwidth x LinkClass::efficiency.
struct Fabric {
  int nodes = 1;
  int ranks_per_node = 1;
  BytesPerSecond peer{};  // of one rank to the others of its node, each direction
  BytesPerSecond nic{};   // of one node, shared by its ranks, each direction
  Seconds peer_latency{}, nic_latency{};
  CollectiveLaw peer_law, nic_law;
  /// Of all-reduces of more than two ranks of a node, whose switches add up what passes (NVLS); 0:
  /// `peer`.
  BytesPerSecond peer_reduced{};
  /// NICs of a node that are each on a switch of their own, one rank (or as many ranks each) next
  /// to each of them. What a rank sends to one of another rail goes over the peer links to the rank
  /// of its own node that is on that rail, and from there over the rail (NCCL's PXN; [Wang et al.
  /// 2023, "Rail-only", arXiv:2307.12169, Sec. 4.2]). 1: any NIC reaches any other.
  int rails = 1;
  /// Nodes, one after the other, whose traffic to each other stays below one leaf switch (with
  /// rails: one on each rail); 0: all. Other traffic shares the leaf's uplinks, which have the
  /// bandwidth of its nodes' NICs over `oversubscription`.
  int leaf_nodes = 0;
  double oversubscription = 1;  // factor
  bool reduces = false;  // switches between nodes add up what passes [Graham et al. 2016, "SHArP"]
  /// A TPU slice, or ranks of one: `peer` is one link of a chip, one direction, `peer_latency` that
  /// of a hop; one node, as many ranks as chips. Its collectives are those named torus_ below.
  bool on_torus = false;
  std::array<TorusAxis, 3> axes{};
  int ranks() const { return nodes * ranks_per_node; }
  const CollectiveLaw& law() const { return nodes > 1 ? nic_law : peer_law; }
  /// Of the peer links in an all-reduce.
  BytesPerSecond peer_of_sum() const {
    return ranks_per_node > 2 && peer_reduced.v > 0 ? peer_reduced : peer;
  }
  bool has_spine() const { return leaf_nodes > 0 && nodes > leaf_nodes && oversubscription > 1; }
  BytesPerSecond uplink() const { return nic * (leaf_nodes / oversubscription); }
  /// Where of a leaf's nodes one sends out of it at a time: rings, chains.
  BytesPerSecond one_out() const { return has_spine() && uplink() < nic ? uplink() : nic; }
};
/// The nodes that `workers` workers of the pool take; the slower of the two where the chief has a
/// pool of its own.
Fabric fabric_of(const Plan& plan, const PlannedStrategy& strategy, int workers);
/// The ranks of one worker alone.
Fabric fabric_of_worker(const PlannedPool& pool, const PlannedStrategy& strategy);

/// Hops of `times` rounds of a ring through all ranks: of n - 1 hops N - 1 are between nodes. The
/// call is in it.
Seconds ring_latency(const Fabric& fabric, int times);
/// What a collective waits besides its bytes, whose `transfer` on the busiest link is w, with hops
/// that take `latency`, L, in all: L + c sqrt(L w), c = CollectiveLaw::pieces, else 2: a message is
/// cut into m pieces, k hops of latency a each wait for one, (k + m) (a + w / m), and the best m
/// makes it (sqrt(k a) + sqrt(w))^2 [Sanders, Speck, Traeff 2009, Sec. 2]. Measured on NCCL:
/// catalogs/links.yaml, docs/research/collectives.md.
Seconds collective_wait(const Fabric& fabric, Seconds latency, Seconds transfer);

/// Ring [Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms", JPDC 69(2)]: 2(n-1)
/// rounds of M/n, one ring through all ranks, so each NIC carries one flow a round: w = 2(n-1) M /
/// (n B) and collective_wait() of ring_latency(2); where that was not measured 2(n-1) (a + M / (n
/// B)).
Collective ring_all_reduce(const Fabric& fabric, Bytes size, bool fold = true);

/// Double binary tree between nodes [Sanders, Speck, Traeff 2009, "Two-tree algorithms for full
/// bandwidth broadcast, reduction and scan", Parallel Computing 35(12)], chains inside, as NCCL
/// since 2.4 (trees.cc). Each tree reduces, then broadcasts, half of M in pieces; an inner node
/// receives M in the first phase: w = 2 M / B and collective_wait() of L = call + 2 (ceil(log2 N) a
/// + (G-1) a_peer), c = 2 where it was not measured; for N = 2 M/2 a phase.
Collective tree_all_reduce(const Fabric& fabric, Bytes size, bool fold = true);

/// Reduce-scatter in each node (G-1 rounds of M/G), a ring across nodes for each of the G shards at
/// once (the NIC shared by G flows, 2(N-1) rounds of M/(G N)), all-gather in each node; one call.
Collective hierarchical_all_reduce(const Fabric& fabric, Bytes size, bool fold = true);

/// Reduce-scatter in each node, each of the G shards up to the switches and the sum back down, all
/// at once in both directions, all-gather in each node: a byte of a shard crosses its NIC once each
/// way [Graham et al. 2016, "Scalable hierarchical aggregation protocol (SHArP)", COMHPC]: call +
/// 2(G-1) (a_peer + M / (G B_peer)) + 2 a + M / B. Needs Fabric::reduces.
Collective in_network_all_reduce(const Fabric& fabric, Bytes size, bool fold = true);

/// Ring all-gather: every rank ends with `size` bytes, of which it began with size / n. n-1 rounds
/// of size / n: as those of ring_all_reduce(), half as many. A reduce-scatter is the same rounds
/// the other way round.
Collective ring_all_gather(const Fabric& fabric, Bytes size, bool fold = true);
Collective ring_reduce_scatter(const Fabric& fabric, Bytes size, bool fold = true);

/// One round of a ring: every rank sends `size` to the next one.
Collective ring_hop(const Fabric& fabric, Bytes size, bool fold = true);

/// Every rank sends size / n to each other one, all at once: inside a node over the peer links,
/// between nodes over the NIC, which the node's G ranks share: w = max((G-1) size / (n B_peer), G
/// (n-G) size / (n B)). With R rails each rank's peer link also carries (n-G) (R-1)/R pieces on
/// their way to another rail. Where the law of the links was measured it waits collective_wait() of
/// ring_latency(1), else a_peer inside, a between nodes, both with rails. Above leaves of L nodes,
/// oversubscribed by s: s G (n-G L) size / (n B) at least.
Collective all_to_all(const Fabric& fabric, Bytes size, bool fold = true);

/// Every rank sends `size` to one other, `f.nodes` > 1: of the next node, over the NIC that its
/// node's ranks share; else of its own node.
Collective send_to_next(const Fabric& fabric, Bytes size, bool fold = true);

/// All chips of a slice, so many along each of at most three axes; `wraps`: axes close, and a ring
/// runs both ways at once, else a ring is laid into the line. `link`: one link, one direction;
/// `latency`: of a hop.
Fabric torus_fabric(std::span<const int> axes, bool wraps, BytesPerSecond link, Seconds latency);

/// Multi-dimensional all-reduce [Ying et al. 2018, "Image classification at supercomputer scale",
/// Sec. 2.2, 2-D gradient summation]: as many chunks as axes, chunk j reduce-scatters along axes j,
/// j+1, ... (mod d) and gathers back in reverse, so all axes carry data at once. A round on an axis
/// of k chips moves 1/k of what is left of the chunk; where the axis wraps, half of it each way.
/// Chunks share an axis' links where axes differ in length. Of a group whose chips are `apart`,
/// each link is the group's part of it, and a hop so many.
Collective torus_all_reduce(const Fabric& group, Bytes size, bool fold = true);
/// The second half of it. A reduce-scatter is the same rounds the other way round.
Collective torus_all_gather(const Fabric& group, Bytes size, bool fold = true);
/// What the busiest link of each axis carries (torus_exchange_time), all axes at once; always
/// folded.
Collective torus_all_to_all(const Fabric& group, Bytes size);
/// Every chip sends `size` to the next of its group; always folded.
Collective torus_send(const Fabric& group, Bytes size);

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast };
constexpr auto words_of(CollectiveKind) {
  return std::array{Word<CollectiveKind>{"all_reduce", CollectiveKind::all_reduce},
                    Word<CollectiveKind>{"all_gather", CollectiveKind::all_gather},
                    Word<CollectiveKind>{"reduce_scatter", CollectiveKind::reduce_scatter},
                    Word<CollectiveKind>{"all_to_all", CollectiveKind::all_to_all},
                    Word<CollectiveKind>{"broadcast", CollectiveKind::broadcast}};
}

/// By how much the bus bandwidth is more than the algorithm's (size / time): 2(n-1)/n of an
/// all-reduce, (n-1)/n of all-gather, reduce-scatter and all-to-all, 1 of a broadcast; the size is
/// the whole buffer's [NVIDIA/nccl-tests doc/PERFORMANCE.md].
double bus_factor(CollectiveKind kind, int ranks);
BytesPerSecond bus_bandwidth(CollectiveKind kind, Bytes size, int ranks, Seconds time);

}  // namespace reckon
