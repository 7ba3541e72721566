#include "sim/step/collective_graphs.h"

// Collectives that move data without adding it up everywhere.
namespace reckon {

Collective ring_all_gather(const Fabric& f, Bytes size, bool fold) {
  const int n = f.ranks();
  Collective c;
  if (n <= 1) return c;
  const Bytes chunk = size / double(n);
  c.steps = n - 1;
  c.sent_by_rank = chunk * double(n - 1);
  NetworkProblem& p = c.phases.emplace_back();
  if (fold) {
    if (f.ranks_per_node > 1) add_folded_hop(p, f.peer, f.peer_latency, chunk);
    if (f.nodes > 1) add_folded_hop(p, f.nic, f.nic_latency, chunk);
    p.repeat = n - 1;
  } else {
    const FabricLinks links = add_links(p.network, f);
    add_ring(p, links, f, all_ranks(f), chunk, n - 1, {});
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
  if (fold) {
    if (g > 1) add_folded_hop(p, f.peer, f.peer_latency, piece, std::uint32_t(g - 1));
    if (n > g) add_folded_hop(p, f.nic, f.nic_latency, piece, std::uint32_t(g * (n - g)));
    return c;
  }
  const FabricLinks links = add_links(p.network, f);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      p.graph.add({.delay = same_node(f, from, to) ? f.peer_latency : f.nic_latency,
                   .size = piece,
                   .path = add_route(p.network, links, f, from, to)});
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
      add_folded_hop(p, f.nic, f.nic_latency, size, std::uint32_t(f.ranks_per_node));
    else
      add_folded_hop(p, f.peer, f.peer_latency, size);
    return c;
  }
  const FabricLinks links = add_links(p.network, f);
  const int n = f.ranks(), distance = far ? f.ranks_per_node : 1;
  for (int from = 0; from < n; ++from)
    p.graph.add({.delay = far ? f.nic_latency : f.peer_latency,
                 .size = size,
                 .path = add_route(p.network, links, f, from, (from + distance) % n)});
  return c;
}

}  // namespace reckon
