#pragma once
#include "sim/step/network/collectives.h"

// The fabric that the tests of collectives reckon with by hand.
namespace reckon::test {

/// Nodes on 1.25 GB/s and 40 us, whose ranks reach each other at 20 GB/s and 5 us.
inline Fabric flat(int nodes, int per_node = 1) {
  return {.nodes = nodes,
          .ranks_per_node = per_node,
          .peer = 20.0_GBps,
          .nic = 1.25_GBps,
          .peer_latency = Seconds{5e-6},
          .nic_latency = Seconds{40e-6}};
}

/// The same with links whose collectives were measured, and switches that add up.
inline Fabric measured(Fabric f) {
  f.peer_law = {.call = Seconds{30e-6}, .pieces = 0.4};
  f.nic_law = {.call = Seconds{60e-6}, .pieces = 0.5};
  f.peer_reduced = f.peer * 1.25;
  return f;
}

/// What the graph takes on the fluid network.
inline double seconds(const Collective& c) { return makespan(c, *make_fluid_network()).count(); }

}  // namespace reckon::test
