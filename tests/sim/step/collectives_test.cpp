#include "sim/step/network/collective_cost.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "support/fabrics.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

TEST_CASE("a node sends as fast as its network's class lets one flow be") {
  Plan plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 2, 1);
  PlannedPool& pool = plan.pools.front();
  const PlannedStrategy& strategy = plan.jobs.front().strategy;
  const double efficiency = pool.network_link.efficiency.value;
  const BytesPerSecond printed = pool.machine.network.value;
  CHECK(fabric_of_worker(pool, strategy).nic.v == Approx(printed.v * efficiency));
  pool.network_link.flow = Fact<BytesPerSecond>{printed / 4.0};
  CHECK(fabric_of_worker(pool, strategy).nic.v == Approx(printed.v / 4 * efficiency));
  pool.network_link.flow = Fact<BytesPerSecond>{4.0 * printed};  // no more than there is
  CHECK(fabric_of_worker(pool, strategy).nic.v == Approx(printed.v * efficiency));
}

TEST_CASE("ring all-reduce takes 2(n-1) rounds of M/n and the latency of each") {
  // M = 1.024 GB divides by 2, 8 and 1024. t = 2(n-1) (40 us + M / (n 1.25 GB/s)).
  const Bytes size{1.024e9};
  CHECK(seconds(ring_all_reduce(flat(1), size)) == 0);
  for (const int n : {2, 8, 1024}) {
    const double expected = 2.0 * (n - 1) * (40e-6 + 1.024e9 / n / 1.25e9);
    CHECK(seconds(ring_all_reduce(flat(n), size)) == Approx(expected).epsilon(1e-12));
    CHECK(ring_all_reduce(flat(n), size).steps == 2 * (n - 1));
    CHECK(ring_all_reduce(flat(n), size).sent_by_rank.v == Approx(2.0 * (n - 1) / n * 1.024e9));
  }
}

TEST_CASE("hierarchical all-reduce adds the node's phases to a ring of nodes that share the NIC") {
  const Bytes size{1.024e9};
  // 8 nodes of 4: in the node 2 x 3 (5 us + M/4 / 20 GB/s); between nodes 4 flows of M/32 share the
  // NIC: 2 x 7 (40 us + M/8 / 1.25 GB/s).
  const double inside = 6 * (5e-6 + 1.024e9 / 4 / 20e9);
  const double between = 14 * (40e-6 + 1.024e9 / 8 / 1.25e9);
  CHECK(seconds(hierarchical_all_reduce(flat(8, 4), size)) ==
        Approx(inside + between).epsilon(1e-12));
  CHECK(seconds(hierarchical_all_reduce(flat(1, 1), size)) == 0);
  // One rank a node: nothing but the ring.
  CHECK(seconds(hierarchical_all_reduce(flat(8), size)) ==
        Approx(seconds(ring_all_reduce(flat(8), size))).epsilon(1e-12));
  CHECK(seconds(hierarchical_all_reduce(flat(1024), size)) ==
        Approx(seconds(ring_all_reduce(flat(1024), size))).epsilon(1e-12));
}

TEST_CASE(
    "double binary tree takes two phases of M over an inner node's NIC and log2 n hops each") {
  const Bytes size{1.024e9};
  CHECK(seconds(tree_all_reduce(flat(1), size)) == 0);
  // A phase in the best number of pieces: (sqrt(hops x 40 us) + sqrt(M / B))^2.
  const auto phases = [](double hops, double bytes) {
    const double root = std::sqrt(hops * 40e-6) + std::sqrt(bytes / 1.25e9);
    return Approx(2 * root * root).epsilon(1e-12);
  };
  // Two nodes: each is the other's only child in one tree: M/2 a phase.
  CHECK(seconds(tree_all_reduce(flat(2), size)) == phases(1, 0.512e9));
  CHECK(seconds(tree_all_reduce(flat(8), size)) == phases(3, 1.024e9));
  CHECK(seconds(tree_all_reduce(flat(1024), size)) == phases(10, 1.024e9));
}

TEST_CASE("torus all-reduce uses all axes at once, and both ways of a ring where it closes") {
  const Bytes size{4.096e9};
  const auto summed = [&](std::vector<int> axes, bool wraps) {
    return seconds(torus_all_reduce(torus_fabric(axes, wraps, 10.0_GBps, Seconds{1e-6}), size));
  };
  // Two chunks of M/2. First axis 7 rounds of M/2/8, each half a way: M/32; second axis 7 of M/2/64
  // half a way: M/256; then back: 2 x (7 (1 us + M/32/10 GB/s) + 7 (1 us + M/256/10 GB/s)).
  const double closed = 2 * (7 * (1e-6 + 4.096e9 / 32 / 10e9) + 7 * (1e-6 + 4.096e9 / 256 / 10e9));
  CHECK(summed({8, 8}, true) == Approx(closed).epsilon(1e-12));
  const double open = 2 * (7 * (1e-6 + 4.096e9 / 16 / 10e9) + 7 * (1e-6 + 4.096e9 / 128 / 10e9));
  CHECK(summed({8, 8}, false) == Approx(open).epsilon(1e-12));
  CHECK(summed({1, 1}, true) == 0);
}

TEST_CASE("folded and unfolded collectives take the same time") {
  const Bytes size{9.6e7};  // divides by all chunk counts below
  for (const auto& [nodes, per_node] : {std::pair{1, 4}, {2, 1}, {4, 1}, {5, 2}, {8, 4}, {10, 1}}) {
    const Fabric f = flat(nodes, per_node);
    INFO(nodes << " nodes of " << per_node);
    CHECK(seconds(ring_all_reduce(f, size, false)) ==
          Approx(seconds(ring_all_reduce(f, size))).epsilon(1e-9));
    CHECK(seconds(tree_all_reduce(f, size, false)) ==
          Approx(seconds(tree_all_reduce(f, size))).epsilon(1e-9));
    CHECK(seconds(hierarchical_all_reduce(f, size, false)) ==
          Approx(seconds(hierarchical_all_reduce(f, size))).epsilon(1e-9));
  }
  for (const auto& axes : {std::vector{2, 2}, {4, 4}, {4, 8}, {5, 4}, {4, 4, 4}, {1, 6}}) {
    for (const bool wraps : {false, true}) {
      const Fabric t = torus_fabric(axes, wraps, 10.0_GBps, Seconds{1e-6});
      INFO(axes[0] << " x " << axes[1] << (wraps ? " torus" : " mesh"));
      CHECK(seconds(torus_all_reduce(t, size, false)) ==
            Approx(seconds(torus_all_reduce(t, size))).epsilon(1e-7));  // chunks are whole bytes
      CHECK(seconds(torus_all_gather(t, size, false)) ==
            Approx(seconds(torus_all_gather(t, size))).epsilon(1e-7));
      CHECK(2 * seconds(torus_all_gather(t, size)) <=
            Approx(seconds(torus_all_reduce(t, size))).epsilon(1e-7));
    }
  }
}

TEST_CASE("automatic takes ring or tree: tree for a small message, ring for a large one") {
  const auto network = make_fluid_network();
  const SimulatedCollectives cost(*network);
  const auto small = cost.all_reduce(flat(64), Bytes{1e4}, AllReduceKind::automatic);
  const auto large = cost.all_reduce(flat(64), Bytes{1e9}, AllReduceKind::automatic);
  CHECK(small.kind == AllReduceKind::tree);
  CHECK(large.kind == AllReduceKind::ring);
  for (const auto kind : {AllReduceKind::ring, AllReduceKind::tree}) {
    CHECK(small.time <= cost.all_reduce(flat(64), Bytes{1e4}, kind).time);
    CHECK(large.time <= cost.all_reduce(flat(64), Bytes{1e9}, kind).time);
  }
}

TEST_CASE("bus bandwidth of a ring without latency is the link's") {
  Fabric f = flat(8);
  f.nic_latency = Seconds{};
  const Bytes size{8e8};
  const Seconds t{seconds(ring_all_reduce(f, size))};
  CHECK(bus_bandwidth(CollectiveKind::all_reduce, size, 8, t).v == Approx(1.25e9).epsilon(1e-12));
}

TEST_CASE("bus factors are those of nccl-tests") {
  CHECK(bus_factor(CollectiveKind::all_reduce, 4) == Approx(1.5));   // 2 (4-1) / 4
  CHECK(bus_factor(CollectiveKind::all_gather, 4) == Approx(0.75));  // (4-1) / 4
  CHECK(bus_factor(CollectiveKind::reduce_scatter, 4) == Approx(0.75));
  CHECK(bus_factor(CollectiveKind::all_to_all, 4) == Approx(0.75));
  CHECK(bus_factor(CollectiveKind::broadcast, 4) == 1);
}

TEST_CASE("more bandwidth never makes a collective slower, one rank costs nothing") {
  CHECK(rc::check([] {
    Fabric f = flat(*rc::gen::inRange(1, 20), *rc::gen::inRange(1, 9));
    const Bytes size{double(*rc::gen::inRange(1, 100'000'000))};
    Fabric faster = f;
    faster.nic = f.nic * (1 + *rc::gen::inRange(0, 100) / 10.0);
    faster.peer = f.peer * (1 + *rc::gen::inRange(0, 100) / 10.0);
    for (auto* algorithm : {ring_all_reduce, tree_all_reduce, hierarchical_all_reduce}) {
      const double slow = seconds(algorithm(f, size, true));
      RC_ASSERT(seconds(algorithm(faster, size, true)) <= slow * (1 + 1e-12));
      RC_ASSERT((f.ranks() == 1) == (slow == 0));
    }
  }));
}
