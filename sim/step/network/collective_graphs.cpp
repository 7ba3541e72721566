#include "sim/step/network/collective_graphs.h"

#include <algorithm>
#include <cmath>

namespace reckon {

FabricLinks add_links(Network& network, const Fabric& f) {
  FabricLinks links;
  for (int r = 0; r < f.ranks(); ++r) {
    links.peer_out.push_back(network.add_link(f.peer));
    links.peer_in.push_back(network.add_link(f.peer));
  }
  for (int n = 0; n < f.nodes; ++n) {
    links.nic_out.push_back(network.add_link(f.nic));
    links.nic_in.push_back(network.add_link(f.nic));
  }
  for (int first = 0; f.has_spine() && first < f.nodes; first += f.leaf_nodes) {
    links.leaf_out.push_back(network.add_link(f.uplink()));
    links.leaf_in.push_back(network.add_link(f.uplink()));
  }
  return links;
}

PathId add_route(Network& network, const FabricLinks& links, const Fabric& f, int from, int to) {
  const auto a = std::size_t(from), b = std::size_t(to);
  const auto node_a = std::size_t(from / f.ranks_per_node),
             node_b = std::size_t(to / f.ranks_per_node);
  if (node_a == node_b) return network.add_path({links.peer_out[a], links.peer_in[b]});
  std::vector<LinkId> route{links.nic_out[node_a], links.nic_in[node_b]};
  if (f.has_spine()) {
    const auto leaf_a = node_a / std::size_t(f.leaf_nodes),
               leaf_b = node_b / std::size_t(f.leaf_nodes);
    if (leaf_a != leaf_b) {
      route.push_back(links.leaf_out[leaf_a]);
      route.push_back(links.leaf_in[leaf_b]);
    }
  }
  return network.add_path(route);
}

bool same_node(const Fabric& f, int a, int b) {
  return a / f.ranks_per_node == b / f.ranks_per_node;
}

std::vector<ActivityId> add_ring(NetworkProblem& p, const FabricLinks& links, const Fabric& f,
                                 std::span<const int> members, Bytes chunk, int rounds,
                                 std::span<const ActivityId> start) {
  const std::size_t k = members.size();
  std::vector<PathId> route(k);
  std::vector<Seconds> delay(k);
  for (std::size_t i = 0; i < k; ++i) {
    const int from = members[i], to = members[(i + 1) % k];
    route[i] = add_route(p.network, links, f, from, to);
    delay[i] = same_node(f, from, to) ? f.peer_latency : f.nic_latency;
  }
  std::vector<ActivityId> last(start.begin(), start.end()), next(k);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < k; ++i) {
      const Activity send{.delay = delay[i], .size = chunk, .path = route[i]};
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

Seconds pipelined_latency(Seconds latency, Seconds transfer) {
  return latency + Seconds{2 * std::sqrt(latency.count() * transfer.count())};
}

TreePhase tree_phase(const Fabric& f, Bytes size, int flows_of_busiest_node) {
  TreePhase phase;
  phase.latency = ceil_log2(f.nodes) * f.nic_latency + (f.ranks_per_node - 1) * f.peer_latency;
  if (f.nodes > 1) phase.transfer = size / 2.0 * double(flows_of_busiest_node) / f.nic;
  if (f.has_spine()) {
    const int out = busiest_tree_leaf(f.nodes, f.leaf_nodes);
    phase.transfer = std::max(phase.transfer, size / 2.0 * double(out) / f.uplink());
  }
  if (f.ranks_per_node > 1) phase.transfer = std::max(phase.transfer, size / f.peer);
  return phase;
}

double peer_flows(const Fabric& f) {
  const double own = f.ranks_per_node - 1, others = f.ranks() - f.ranks_per_node;
  const int rails = std::min(f.rails, f.ranks_per_node);
  return own + others * double(rails - 1) / rails;
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
