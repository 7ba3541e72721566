#include "sim/step/network/collective_times.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/step/network/collective_cost.h"
#include "support/fabrics.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// Bytes that every number of ranks here divides: engines round sizes down to whole bytes.
Bytes divisible(int ranks) { return Bytes{1e6 * ranks * ranks}; }

}  // namespace

TEST_CASE("closed forms of the collectives take as long as their graphs, rank by rank") {
  for (const auto& [nodes, per_node] :
       {std::pair{1, 1}, {1, 8}, {2, 1}, {5, 1}, {2, 4}, {4, 4}, {3, 2}}) {
    CAPTURE(nodes, per_node);
    for (const Fabric& f : {flat(nodes, per_node), measured(flat(nodes, per_node))}) {
      CAPTURE(f.law().call.count());
      const Bytes size = divisible(f.ranks());
      const auto same = [&](Seconds closed, Collective (*graph)(const Fabric&, Bytes, bool)) {
        for (const bool fold : {true, false})
          CHECK(closed.count() == Approx(seconds(graph(f, size, fold))).epsilon(1e-9));
      };
      same(all_gather_time(f, size), ring_all_gather);
      same(reduce_scatter_time(f, size), ring_reduce_scatter);
      same(all_to_all_time(f, size), all_to_all);
      same(send_time(f, size), send_to_next);
      same(ring_hop_time(f, size), ring_hop);
      for (const AllReduceAlgorithm& each : all_reduces()) {
        CAPTURE(to_text(each.kind));
        same(all_reduce_time(f, size, each.kind).time, each.graph);
        CHECK(each.graph(f, size, true).sent_by_rank == sent_in_all_reduce(f, size, each.kind));
      }
    }
  }
}

TEST_CASE("measured links: a call, its hops, the bytes, and the pieces of the message") {
  // 8 ranks of a node add up 64 MB in switches that make the links 1.25 times as fast:
  // L = 30 us + 2 x 7 hops of 5 us, w = 14/8 x 64 MB / 25 GB/s = 4.48 ms.
  const Fabric node = measured(flat(1, 8));
  const double l = 100e-6, w = 4.48e-3;
  CHECK(all_reduce_time(node, Bytes{64e6}, AllReduceKind::ring).time.count() ==
        Approx(l + w + 0.4 * std::sqrt(l * w)));
  // Two ranks, and collectives that add nothing up, have the links as they are: 7/8 x 64 MB / 20
  // GB/s.
  const double gather = 30e-6 + 7 * 5e-6, bytes = 2.8e-3;
  CHECK(all_gather_time(node, Bytes{64e6}).count() ==
        Approx(gather + bytes + 0.4 * std::sqrt(gather * bytes)));
  CHECK(measured(flat(1, 2)).peer_of_sum().v == Approx(20e9));
  // 2 nodes of 4: of 7 hops one is between nodes, and 14/8 x 64 MB cross the NIC: 89.6 ms.
  const double far = 60e-6 + 2 * (40e-6 + 6 * 5e-6), across = 89.6e-3;
  CHECK(all_reduce_time(measured(flat(2, 4)), Bytes{64e6}, AllReduceKind::ring).time.count() ==
        Approx(far + across + 0.5 * std::sqrt(far * across)));
  // All to all: 16 flows of 8 MB share a NIC; the hops are those of an all-gather.
  const double near = 60e-6 + 40e-6 + 6 * 5e-6, exchanged = 16 * 8e6 / 1.25e9;
  CHECK(all_to_all_time(measured(flat(2, 4)), Bytes{64e6}).count() ==
        Approx(near + exchanged + 0.5 * std::sqrt(near * exchanged)));
}

TEST_CASE("the closed form picks the algorithm that the graphs pick") {
  const auto network = make_fluid_network();
  CHECK(rc::check([&] {
    Fabric f = flat(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 9));
    if (*rc::gen::arbitrary<bool>()) f = measured(f);
    const Bytes size{double(*rc::gen::inRange(1, 1 << 28))};
    const auto closed = all_reduce_time(f, size, AllReduceKind::automatic);
    const auto graph = SimulatedCollectives(*network).all_reduce(f, size, AllReduceKind::automatic);
    // Whole bytes make the two differ by less than a byte a round.
    const double rounding = 2.0 * f.ranks() / 1.25e9;
    RC_ASSERT(std::abs(closed.time.count() - graph.time.count()) <= rounding);
  }));
}

TEST_CASE("an all-gather moves half of what an all-reduce does") {
  // n = 8 on one node: 7 rounds of (5 us + 64 MB / 8 / 20 GB/s).
  const Fabric f = flat(1, 8);
  CHECK(all_gather_time(f, Bytes{64e6}).count() == Approx(7 * (5e-6 + 8e6 / 20e9)));
  CHECK(2 * all_gather_time(f, Bytes{64e6}).count() ==
        Approx(all_reduce_time(f, Bytes{64e6}, AllReduceKind::ring).time.count()));
}

TEST_CASE("an all-to-all between nodes waits for the NIC that a node's ranks share") {
  // 2 nodes of 4: each rank sends an eighth to each of 4 ranks of the other node: 16 flows of 1 MB
  // over 1.25 GB/s; inside the node 3 of them over 20 GB/s, which is over sooner.
  CHECK(all_to_all_time(flat(2, 4), Bytes{8e6}).count() == Approx(40e-6 + 16e6 / 1.25e9));
  CHECK(all_to_all_time(flat(1, 4), Bytes{8e6}).count() == Approx(5e-6 + 3 * 2e6 / 20e9));
}

TEST_CASE("ranks that stand apart share nodes and NICs as their stride says") {
  const Fabric job = flat(16, 8);  // 128 ranks
  // Tensor parallelism of 8 fills a node.
  Fabric f = group_of(job, 1, 8);
  CHECK((f.nodes == 1 && f.ranks_per_node == 8));
  // 16 ranks that stand 8 apart: one a node, and 8 such groups share each NIC.
  f = group_of(job, 8, 16);
  CHECK((f.nodes == 16 && f.ranks_per_node == 1));
  CHECK(f.nic.v == Approx(1.25e9 / 8));
  // 64 ranks that stand 2 apart: 4 a node, two groups.
  f = group_of(job, 2, 64);
  CHECK((f.nodes == 16 && f.ranks_per_node == 4));
  CHECK(f.nic.v == Approx(1.25e9 / 2));
  // All of them.
  f = group_of(job, 1, 128);
  CHECK((f.nodes == 16 && f.ranks_per_node == 8));
  CHECK(f.nic.v == Approx(1.25e9));
  // One node has no NIC to share.
  f = group_of(flat(1, 8), 2, 4);
  CHECK((f.nodes == 1 && f.ranks_per_node == 4));
}

namespace {

/// flat() with rails and a spine.
Fabric wired(int nodes, int per_node, int rails, int leaf, double oversubscription) {
  Fabric f = flat(nodes, per_node);
  f.rails = rails;
  f.leaf_nodes = leaf;
  f.oversubscription = oversubscription;
  f.reduces = true;
  return f;
}

}  // namespace

TEST_CASE("rails and spines: closed forms take as long as their graphs, rank by rank") {
  struct Case {
    int nodes, per_node, rails, leaf;
    double oversubscription;
  };
  for (const auto& [nodes, per_node, rails, leaf, over] :
       {Case{4, 2, 2, 0, 1}, Case{3, 4, 4, 0, 1}, Case{4, 4, 2, 0, 1}, Case{6, 2, 1, 2, 4},
        Case{8, 1, 1, 4, 2}, Case{8, 2, 2, 2, 8}, Case{7, 2, 1, 3, 6}, Case{4, 2, 1, 1, 3},
        Case{2, 2, 2, 2, 8}}) {
    CAPTURE(nodes, per_node, rails, leaf, over);
    const Fabric f = wired(nodes, per_node, rails, leaf, over);
    const Bytes size = divisible(f.ranks());
    const auto same = [&](Seconds closed, Collective (*graph)(const Fabric&, Bytes, bool)) {
      for (const bool fold : {true, false})
        CHECK(closed.count() == Approx(seconds(graph(f, size, fold))).epsilon(1e-9));
    };
    same(all_gather_time(f, size), ring_all_gather);
    same(all_to_all_time(f, size), all_to_all);
    same(send_time(f, size), send_to_next);
    same(ring_hop_time(f, size), ring_hop);
    for (const AllReduceAlgorithm& each : all_reduces()) {
      CAPTURE(to_text(each.kind));
      same(all_reduce_time(f, size, each.kind).time, each.graph);
    }
  }
}

TEST_CASE("an all-to-all across rails passes the peer links once more") {
  // 4 nodes of 4 on 4 rails, n = 16: a rank sends 3 pieces inside its node, and of the 12 to other
  // nodes 9 to another rail. 12 MB pieces over a peer link of 1 GB/s: (3 + 9) 12 MB = 144 ms, while
  // the NIC, ten times as fast, carries 4 x 12 pieces in 57.6 ms.
  Fabric f = flat(4, 4);
  f.peer = 1.0_GBps;
  f.nic = 10.0_GBps;
  const Bytes size{16 * 12e6};
  CHECK(all_to_all_time(f, size).count() == Approx(40e-6 + 4 * 12 * 12e6 / 10e9));
  f.rails = 4;
  CHECK(all_to_all_time(f, size).count() == Approx(45e-6 + 0.144));
  // What stays on its rail does not notice.
  const auto summed = [&] {
    return all_reduce_time(f, size, AllReduceKind::hierarchical).time.count();
  };
  const double on_rails = summed();
  f.rails = 1;
  CHECK(on_rails == Approx(summed()));
}

TEST_CASE(
    "a spine slows an all-to-all by its oversubscription, and a ring only where leaves are small") {
  // 8 nodes of one rank, 1.25 GB/s, leaves of 4, 4:1. Of an all-to-all 4 of 7 pieces leave the
  // leaf: 4 x 4 pieces over an uplink of 1.25 GB/s.
  const Fabric f = wired(8, 1, 1, 4, 4), plain = flat(8);
  const Bytes size{8 * 1.25e8};  // pieces of 125 MB
  CHECK(all_to_all_time(plain, size).count() == Approx(40e-6 + 7 * 0.1));
  CHECK(all_to_all_time(f, size).count() == Approx(40e-6 + 16 * 0.1));
  const auto ring = [&](const Fabric& fabric) {
    return all_reduce_time(fabric, size, AllReduceKind::ring).time.count();
  };
  CHECK(ring(f) == Approx(ring(plain)));  // one flow of four leaves the leaf: 4:1 is just enough
  // 8:1: it has half of its NIC's bandwidth, and the ring waits for it.
  CHECK(ring(wired(8, 1, 1, 4, 8)) == Approx(14 * (40e-6 + 0.2)));
}

TEST_CASE("switches that add up move a byte once each way") {
  // 4 nodes of 2: reduce-scatter and all-gather inside, 1 round each of 1 GB / 2; 2 x 40 us and 1
  // GB through the NIC.
  const Fabric f = wired(4, 2, 1, 0, 1);
  const Seconds t = all_reduce_time(f, Bytes{1e9}, AllReduceKind::in_network).time;
  CHECK(t.count() == Approx(2 * (5e-6 + 0.5e9 / 20e9) + 80e-6 + 1e9 / 1.25e9));
  CHECK(all_reduce_time(f, Bytes{1e9}, AllReduceKind::automatic).kind == AllReduceKind::in_network);
  Fabric plain = f;
  plain.reduces = false;
  CHECK(all_reduce_time(plain, Bytes{1e9}, AllReduceKind::automatic).kind !=
        AllReduceKind::in_network);
}

TEST_CASE("groups of ranks share a leaf's uplinks in equal parts") {
  // 16 nodes of 8, leaves of 4 nodes, 2:1. Every 8th rank: the group has 1 of 8 ranks of each node
  // and 1/8 of NIC and uplinks; four of its nodes stand under a leaf.
  const Fabric job = wired(16, 8, 8, 4, 2);
  const Fabric data = group_of(job, 8, 16);
  CHECK(data.leaf_nodes == 4);
  CHECK(data.uplink().v == Approx(job.uplink().v / 8));
  // Every 32nd rank: one of its nodes a leaf, whose uplinks 32 groups share.
  const Fabric far = group_of(job, 32, 4);
  CHECK(far.leaf_nodes == 1);
  CHECK(far.uplink().v == Approx(job.uplink().v / 32));
  CHECK(group_of(job, 1, 8).rails == 8);
  CHECK(group_of(job, 4, 8).rails == 2);
}
