#include "sim/step/network/torus_times.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/step/network/collective_times.h"
#include "support/fabrics.h"

using namespace reckon;
using namespace reckon::test;

namespace {

Fabric torus(std::vector<int> axes, bool wraps) {
  return torus_fabric(axes, wraps, 10.0_GBps, Seconds{1e-6});
}

/// Loads of an axis' links, one way, when every chip of a ring or line sends `piece` bytes to each
/// other one by the shortest way (half each way where both are as long): the most of any link.
double busiest_link(int chips, bool closed, double piece) {
  std::vector<double> up(std::size_t(chips), 0.0);
  for (int from = 0; from < chips; ++from) {
    for (int to = 0; to < chips; ++to) {
      const int ahead = closed ? (to - from + chips) % chips : to - from;
      const bool half = closed && 2 * ahead == chips;
      if (ahead <= 0 || (closed && 2 * ahead > chips)) continue;
      for (int hop = 0; hop < ahead; ++hop)
        up[std::size_t((from + hop) % chips)] += half ? piece / 2 : piece;
    }
  }
  return *std::max_element(up.begin(), up.end());
}

}  // namespace

TEST_CASE("gathering twice takes as long as the graph of the sum where axes are alike") {
  const Bytes size{9.6e7 * 27};  // whole bytes for all chunks below
  for (const auto& axes : {std::vector{8}, {4, 4}, {3, 3}, {4, 4, 4}, {1, 6}, {1, 4, 4}}) {
    for (const bool wraps : {false, true}) {
      CAPTURE(axes.size(), axes.back(), wraps);
      const Fabric t = torus(axes, wraps);
      const double graph = seconds(torus_all_reduce(t, size));
      CHECK(2 * torus_gather_time(t, size).count() == Approx(graph).epsilon(1e-7));
      CHECK(all_reduce_time(t, size, AllReduceKind::automatic).time.count() ==
            Approx(graph).epsilon(1e-7));
    }
  }
}

TEST_CASE("where axes differ the closed form is at most a quarter below the graph, never above") {
  const Bytes size{9.6e8};
  for (const auto& axes : {std::vector{2, 8}, {4, 8}, {8, 16}, {2, 2, 4}, {4, 4, 8}, {8, 8, 16}}) {
    for (const bool wraps : {false, true}) {
      CAPTURE(axes.front(), axes.back(), wraps);
      Fabric t = torus(axes, wraps);
      t.peer_latency = {};
      const double graph = seconds(torus_all_reduce(t, size));
      const double closed = 2 * torus_gather_time(t, size).count();
      CHECK(closed <= graph * (1 + 1e-9));
      CHECK(closed >= 0.75 * graph);
    }
  }
}

TEST_CASE("an all-to-all takes what the busiest link of pieces routed one by one takes") {
  for (const int chips : {2, 3, 4, 5, 8, 16}) {
    for (const bool closed : {false, true}) {
      CAPTURE(chips, closed);
      Fabric f = torus({chips}, closed);
      f.peer_latency = {};
      const double size = 1e9;
      const double routed = busiest_link(chips, closed, size / chips) / 10e9;
      CHECK(torus_exchange_time(f, Bytes{size}).count() == Approx(routed));
    }
  }
  // Two axes: each piece along one, then the other; both axes carry all bytes at once.
  Fabric f = torus({4, 16}, true);
  f.peer_latency = {};
  CHECK(torus_exchange_time(f, Bytes{1e9}).count() == Approx(16.0 / 8 * 1e9 / 10e9));
  // A quarter of an all-gather of what all of a ring send together.
  f = torus({16}, true);
  f.peer_latency = {};
  CHECK(torus_exchange_time(f, Bytes{1e9}).count() ==
        Approx(torus_gather_time(f, Bytes{16e9}).count() / 4).epsilon(1.0 / 15));
}

TEST_CASE("degrees take whole axes where they can, and then their rings are closed") {
  const Fabric slice = torus({4, 4, 8}, true);
  TorusGroups g = torus_groups(slice, {.tensor = 4, .data = 32});
  CHECK(g.tensor.ranks() == 4);
  CHECK((g.tensor.axes[0].chips == 4 && g.tensor.axes[0].closed));
  CHECK(g.state.ranks() == 32);
  CHECK((g.state.axes[1].chips == 4 && g.state.axes[2].chips == 8 && g.state.axes[2].closed));
  // Sixteen are two axes, not eight of one and two of another.
  g = torus_groups(slice, {.tensor = 16, .data = 8});
  CHECK((g.tensor.axes[0].chips == 4 && g.tensor.axes[1].chips == 4));
  // All: the slice itself.
  g = torus_groups(slice, {.data = 128});
  CHECK(torus_gather_time(g.state, Bytes{1e9}) == torus_gather_time(slice, Bytes{1e9}));
}

TEST_CASE("a part of an axis is an open line, and what lies across it shares its links") {
  // 16 x 16, tensor 4: four neighbours of a row. Data: the row's other 4, four links apart, on a
  // ring whose links four groups share, and all of the columns.
  const Fabric slice = torus({16, 16}, true);
  const TorusGroups g = torus_groups(slice, {.tensor = 4, .data = 64});
  CHECK((g.tensor.axes[0].chips == 4 && g.tensor.axes[0].apart == 1 && !g.tensor.axes[0].closed));
  CHECK(g.state.ranks() == 64);
  CHECK((g.state.axes[0].chips == 4 && g.state.axes[0].apart == 4 && g.state.axes[0].closed));
  CHECK((g.state.axes[1].chips == 16 && g.state.axes[1].apart == 1 && g.state.axes[1].closed));
  // A line of 4: 3 rounds of a quarter over one link each way.
  CHECK(torus_gather_time(g.tensor, Bytes{4e9}).count() == Approx(3 * (1e-6 + 1e9 / 10e9)));
  // Stages that are four links apart: four of them over each link.
  const TorusGroups p = torus_groups(slice, {.tensor = 4, .data = 16, .pipeline = 4});
  CHECK(p.pipeline.axes[0].apart == 4);
  CHECK(send_time(p.pipeline, Bytes{1e9}).count() == Approx(4 * (1e-6 + 1e9 / 10e9)));
}

TEST_CASE("experts and data together are the data ranks again") {
  const Fabric slice = torus({4, 8, 8}, true);
  const TorusGroups g = torus_groups(slice, {.tensor = 4, .context = 2, .expert = 8, .data = 4});
  CHECK(g.context.ranks() == 2);
  CHECK(g.expert.ranks() == 8);
  CHECK(g.state.ranks() == 64);
  CHECK(g.expert_state.ranks() == 8);
  // Context has a part of the axis whose rest the data has: together they close it.
  CHECK(std::any_of(g.state.axes.begin(), g.state.axes.end(),
                    [](const TorusAxis& a) { return a.chips == 8 && a.closed && a.apart == 1; }));
}
