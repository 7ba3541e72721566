#include <algorithm>
#include <cmath>

#include "sim/step/network/collective_graphs.h"

// Collectives that move data without adding it up everywhere.
namespace reckon {
namespace {

/// Between nodes, by way of the rank of the sender's node that is on the receiver's rail.
PathId add_rail_route(Network& network, FabricLinks& links, const Fabric& f, int from, int to) {
  const int g = f.ranks_per_node, rails = std::min(f.rails, g);
  const auto rail = [&](int rank) { return rank % g % rails; };
  if (rail(from) == rail(to)) return add_route(network, links, from, to);
  // The one of the same place among those of its rail, so that all carry as much.
  const int by = from / g * g + (from % g / rails * rails + rail(to)) % g;
  return add_route(network, links, from, by, to);
}

}  // namespace

Collective ring_all_gather(const Fabric& f, Bytes size, bool fold) {
  Collective c;
  if (f.ranks() <= 1) return c;
  const RingRounds ring = all_gather_rounds(f, size);
  c.steps = ring.rounds;
  c.sent_by_rank = ring.chunk * double(ring.rounds);
  add_rounds(c.phases.emplace_back(), ring, f, fold);
  return c;
}

Collective ring_hop(const Fabric& f, Bytes size, bool fold) {
  Collective c;
  if (f.ranks() <= 1) return c;
  c.steps = 1;
  c.sent_by_rank = size;
  NetworkProblem& p = c.phases.emplace_back();
  if (fold) {
    if (f.ranks_per_node > 1) add_folded_hop(p, f.peer, f.peer_latency, size);
    if (f.nodes > 1) add_folded_hop(p, f.one_out(), f.nic_latency, size);
    return c;
  }
  FabricLinks links = add_links(p.network, f);
  const int n = f.ranks();
  for (int from = 0; from < n; ++from) {
    const int to = (from + 1) % n;
    p.graph.add({.delay = same_node(f, from, to) ? f.peer_latency : f.nic_latency,
                 .size = size,
                 .path = add_route(p.network, links, from, to)});
  }
  return c;
}

Collective ring_reduce_scatter(const Fabric& f, Bytes size, bool fold) {
  return ring_all_gather(f, size, fold);
}

Collective all_to_all(const Fabric& f, Bytes size, bool fold) {
  const int n = f.ranks(), g = f.ranks_per_node;
  Collective c;
  if (n <= 1) return c;
  const Bytes piece = size / double(n);
  c.steps = 1;
  c.sent_by_rank = piece * double(n - 1);
  NetworkProblem& p = c.phases.emplace_back();
  const ExchangeStart start = exchange_start(f, size);
  if (fold) {
    const auto flows = [](double count) { return std::uint32_t(std::lround(count)); };
    if (g > 1) add_folded_hop(p, f.peer, start.inside, piece, flows(peer_flows(f)));
    if (n > g) add_folded_hop(p, f.nic, start.between, piece, std::uint32_t(g * (n - g)));
    if (f.has_spine())
      add_folded_hop(p, f.uplink(), start.between, piece, flows(flows_out_of_leaf(f)));
    return c;
  }
  FabricLinks links = add_links(p.network, f);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      const bool near = same_node(f, from, to);
      p.graph.add({.delay = near ? start.inside : start.between,
                   .size = piece,
                   .path = near ? add_route(p.network, links, from, to)
                                : add_rail_route(p.network, links, f, from, to)});
    }
  }
  return c;
}

Collective send_to_next(const Fabric& f, Bytes size, bool fold) {
  Collective c;
  if (f.ranks() <= 1) return c;
  c.steps = 1;
  c.sent_by_rank = size;
  NetworkProblem& p = c.phases.emplace_back();
  const bool far = f.nodes > 1;
  if (fold) {
    if (far)
      add_folded_hop(p, f.one_out(), f.nic_latency, size, std::uint32_t(f.ranks_per_node));
    else
      add_folded_hop(p, f.peer, f.peer_latency, size);
    return c;
  }
  FabricLinks links = add_links(p.network, f);
  const int n = f.ranks(), distance = far ? f.ranks_per_node : 1;
  for (int from = 0; from < n; ++from)
    p.graph.add({.delay = far ? f.nic_latency : f.peer_latency,
                 .size = size,
                 .path = add_route(p.network, links, from, (from + distance) % n)});
  return c;
}

}  // namespace reckon
