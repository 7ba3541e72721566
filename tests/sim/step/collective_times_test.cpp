#include "sim/step/collective_times.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

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
    const Fabric f = flat(nodes, per_node);
    const Bytes size = divisible(f.ranks());
    const auto same = [&](Seconds closed, Collective (*graph)(const Fabric&, Bytes, bool)) {
      for (const bool fold : {true, false})
        CHECK(closed.count() == Approx(seconds(graph(f, size, fold))).epsilon(1e-9));
    };
    same(all_gather_time(f, size), ring_all_gather);
    same(reduce_scatter_time(f, size), ring_reduce_scatter);
    same(all_to_all_time(f, size), all_to_all);
    same(send_time(f, size), send_to_next);
    same(all_reduce_time(f, size, AllReduceKind::ring).time, ring_all_reduce);
    same(all_reduce_time(f, size, AllReduceKind::tree).time, tree_all_reduce);
    same(all_reduce_time(f, size, AllReduceKind::hierarchical).time, hierarchical_all_reduce);
  }
}

TEST_CASE("the closed form picks the algorithm that the graphs pick") {
  const auto network = make_fluid_network();
  CHECK(rc::check([&] {
    const Fabric f = flat(*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 9));
    const Bytes size{double(*rc::gen::inRange(1, 1 << 28))};
    const auto closed = all_reduce_time(f, size, AllReduceKind::automatic);
    const auto graph = all_reduce(f, size, AllReduceKind::automatic, *network);
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
