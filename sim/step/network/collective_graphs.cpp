#include "sim/step/network/collective_graphs.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {
namespace {
/// c of L + w + c sqrt(L w) with the best number of pieces [Sanders, Speck, Traeff 2009, Sec.
/// 2].
constexpr double kBestPieces = 2;
}  // namespace

FabricLinks add_links(Network& network, const Fabric& f, BytesPerSecond peer) {
  FabricLinks links;
  FabricGraph& graph = links.graph;
  links.rank = graph.add_devices(f.ranks());
  // Inside a node a switch of the ranks. What leaves it and what enters it goes through ports of
  // its own: a NIC does not carry what stays.
  const auto peers = graph.add_devices(f.nodes), out = graph.add_devices(f.nodes),
             in = graph.add_devices(f.nodes);
  const int leaves = f.has_spine() ? (f.nodes + f.leaf_nodes - 1) / f.leaf_nodes : 1;
  const auto leaf = graph.add_devices(leaves);
  for (std::size_t r = 0; r < links.rank.size(); ++r) {
    const std::size_t node = r / std::size_t(f.ranks_per_node);
    graph.connect(links.rank[r], peers[node], network.add_link(peer));
    graph.connect(peers[node], links.rank[r], network.add_link(peer));
    graph.connect(links.rank[r], out[node]);
    graph.connect(in[node], links.rank[r]);
  }
  for (std::size_t n = 0; n < peers.size(); ++n) {
    const auto at = leaf[f.has_spine() ? n / std::size_t(f.leaf_nodes) : 0];
    links.nic_out.push_back(network.add_link(f.nic));
    links.nic_in.push_back(network.add_link(f.nic));
    graph.connect(out[n], at, links.nic_out.back());
    graph.connect(at, in[n], links.nic_in.back());
  }
  if (f.has_spine()) {
    const auto spine = graph.add_device();
    for (const auto at : leaf) {
      links.leaf_out.push_back(network.add_link(f.uplink()));
      links.leaf_in.push_back(network.add_link(f.uplink()));
      graph.connect(at, spine, links.leaf_out.back());
      graph.connect(spine, at, links.leaf_in.back());
    }
  }
  RECKON_CHECK(graph.connected());
  return links;
}

PathId add_route(Network& network, FabricLinks& links, int from, int to) {
  return network.add_path(
      links.graph.route(links.rank[std::size_t(from)], links.rank[std::size_t(to)]));
}

PathId add_route(Network& network, FabricLinks& links, int from, int by, int to) {
  const auto device = [&](int rank) { return links.rank[std::size_t(rank)]; };
  std::vector<LinkId> route = links.graph.route(device(from), device(by));
  const auto onward = links.graph.route(device(from), device(to));  // as from `by`
  route.insert(route.end(), onward.begin(), onward.end());
  return network.add_path(route);
}

bool same_node(const Fabric& f, int a, int b) {
  return a / f.ranks_per_node == b / f.ranks_per_node;
}

std::vector<ActivityId> add_ring(NetworkProblem& p, FabricLinks& links, const Fabric& f,
                                 std::span<const int> members, const RingRounds& ring,
                                 std::span<const ActivityId> start) {
  const std::size_t k = members.size();
  std::vector<PathId> route(k);
  std::vector<Seconds> delay(k);
  for (std::size_t i = 0; i < k; ++i) {
    const int from = members[i], to = members[(i + 1) % k];
    route[i] = add_route(p.network, links, from, to);
    delay[i] = same_node(f, from, to) ? ring.peer_delay : ring.nic_delay;
  }
  std::vector<ActivityId> last(start.begin(), start.end()), next(k);
  for (int round = 0; round < ring.rounds; ++round) {
    for (std::size_t i = 0; i < k; ++i) {
      const Activity send{.delay = delay[i], .size = ring.chunk, .path = route[i]};
      if (last.empty()) {
        next[i] = p.graph.add(send, {});
      } else {
        next[i] = p.graph.add(send, {last[i], last[(i + k - 1) % k]});
      }
    }
    last = next;
  }
  return last;
}

void add_folded_hop(NetworkProblem& p, BytesPerSecond bandwidth, Seconds latency, Bytes chunk,
                    std::uint32_t sharing) {
  const LinkId link = p.network.add_link(bandwidth);
  const PathId path = p.network.add_path({link});
  p.graph.add({.delay = latency, .size = chunk, .path = path, .multiplicity = sharing}, {});
}

void add_call(Collective& c, const Fabric& f) {
  if (f.law().call.count() > 0) c.phases.emplace_back().graph.add({.delay = f.law().call});
}

Seconds collective_wait(const Fabric& f, Seconds latency, Seconds transfer) {
  return latency + Seconds{f.law().pieces.value_or(kBestPieces) *
                           std::sqrt(latency.count() * transfer.count())};
}

Seconds ring_latency(const Fabric& f, int times) {
  return f.law().call +
         times * ((f.nodes - 1) * f.nic_latency + (f.ranks() - f.nodes) * f.peer_latency);
}

namespace {

/// A round, of which the slowest hop is waited for.
Seconds time_of_round(const Fabric& f, const RingRounds& ring) {
  Seconds t{};
  if (f.ranks_per_node > 1) t = ring.peer_delay + ring.chunk / ring.peer;
  if (f.nodes > 1) t = std::max(t, ring.nic_delay + ring.chunk / f.one_out());
  return t;
}

RingRounds rounds_of(const Fabric& f, Bytes size, int times, BytesPerSecond peer) {
  if (f.ranks() <= 1) return {};
  RingRounds ring{
      .chunk = size / double(f.ranks()), .rounds = times * (f.ranks() - 1), .peer = peer};
  if (f.law().pieces) {
    const Seconds transfer = time_of(f, ring);  // without delays
    ring.peer_delay = ring.nic_delay =
        collective_wait(f, ring_latency(f, times), transfer) / double(ring.rounds);
  } else {
    ring.peer_delay = f.peer_latency;
    ring.nic_delay = f.nic_latency;
  }
  return ring;
}

}  // namespace

RingRounds all_reduce_rounds(const Fabric& f, Bytes size) {
  return rounds_of(f, size, 2, f.peer_of_sum());
}
RingRounds all_gather_rounds(const Fabric& f, Bytes size) { return rounds_of(f, size, 1, f.peer); }

Seconds time_of(const Fabric& f, const RingRounds& ring) {
  return ring.rounds * time_of_round(f, ring);
}

void add_rounds(NetworkProblem& p, const RingRounds& ring, const Fabric& f, bool fold) {
  if (!fold) {
    FabricLinks links = add_links(p.network, f, ring.peer);
    add_ring(p, links, f, all_ranks(f), ring, {});
    return;
  }
  if (f.ranks_per_node > 1) add_folded_hop(p, ring.peer, ring.peer_delay, ring.chunk);
  if (f.nodes > 1) add_folded_hop(p, f.one_out(), ring.nic_delay, ring.chunk);
  p.repeat = ring.rounds;
}

TreePhase tree_phase(const Fabric& f, Bytes size, int flows_of_busiest_node) {
  TreePhase phase;
  const Seconds hops = ceil_log2(f.nodes) * f.nic_latency + (f.ranks_per_node - 1) * f.peer_latency;
  if (f.nodes > 1) phase.transfer = size / 2.0 * double(flows_of_busiest_node) / f.nic;
  if (f.has_spine()) {
    const int out = busiest_tree_leaf(f.nodes, f.leaf_nodes);
    phase.transfer = std::max(phase.transfer, size / 2.0 * double(out) / f.uplink());
  }
  if (f.ranks_per_node > 1) phase.transfer = std::max(phase.transfer, size / f.peer_of_sum());
  phase.latency = collective_wait(f, f.law().call + 2 * hops, 2 * phase.transfer) / 2.0;
  return phase;
}

double peer_flows(const Fabric& f) {
  const double own = f.ranks_per_node - 1, others = f.ranks() - f.ranks_per_node;
  const int rails = std::min(f.rails, f.ranks_per_node);
  return own + others * double(rails - 1) / rails;
}

ExchangeStart exchange_start(const Fabric& f, Bytes size) {
  if (f.law().pieces) {
    const int n = f.ranks(), g = f.ranks_per_node;
    const Bytes piece = size / double(n);
    Seconds transfer{};
    if (g > 1) transfer = peer_flows(f) * piece / f.peer;
    if (n > g) transfer = std::max(transfer, double(g) * double(n - g) * piece / f.nic);
    if (f.has_spine()) transfer = std::max(transfer, flows_out_of_leaf(f) * piece / f.uplink());
    const Seconds wait = collective_wait(f, ring_latency(f, 1), transfer);
    return {wait, wait};
  }
  if (f.nodes == 1 || std::min(f.rails, f.ranks_per_node) == 1)
    return {f.peer_latency, f.nic_latency};
  return {f.peer_latency + f.nic_latency, f.peer_latency + f.nic_latency};
}

double flows_out_of_leaf(const Fabric& f) {
  const double inside = double(f.leaf_nodes) * f.ranks_per_node;
  return f.has_spine() ? inside * (f.ranks() - inside) : 0;
}

std::vector<int> all_ranks(const Fabric& f) {
  std::vector<int> ranks(std::size_t(f.ranks()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = int(i);
  return ranks;
}

}  // namespace reckon
