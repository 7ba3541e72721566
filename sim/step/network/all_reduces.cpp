#include "sim/step/network/all_reduces.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/step/network/collective_graphs.h"
#include "sim/step/network/torus_times.h"

namespace reckon {
namespace {

/// Parent of a node in NCCL's binary tree over n nodes rooted at 0 (trees.cc, ncclGetBtree); -1 for
/// the root.
int tree_parent(int node, int n) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up >= n ? node ^ bit : up;
}

/// The second tree: mirrored for an even number of nodes, shifted for an odd one (ncclGetDtree), so
/// that inner nodes of one tree are leaves of the other.
int second_tree_parent(int node, int n) {
  if (n % 2 == 0) {
    const int parent = tree_parent(n - 1 - node, n);
    return parent < 0 ? -1 : n - 1 - parent;
  }
  const int parent = tree_parent((node - 1 + n) % n, n);
  return parent < 0 ? -1 : (parent + 1) % n;
}

}  // namespace

int busiest_tree_node(int n) {
  std::vector<int> in(std::size_t(n), 0), out(std::size_t(n), 0);
  for (int v = 0; v < n; ++v) {
    for (const int parent : {tree_parent(v, n), second_tree_parent(v, n)}) {
      if (parent < 0) continue;
      ++in[std::size_t(parent)];
      ++out[std::size_t(v)];
    }
  }
  int most = 0;
  for (std::size_t v = 0; v < in.size(); ++v) most = std::max({most, in[v], out[v]});
  return most;
}

int busiest_tree_leaf(int n, int leaf) {
  const auto leaves = std::size_t((n + leaf - 1) / leaf);
  std::vector<int> in(leaves, 0), out(leaves, 0);
  for (int v = 0; v < n; ++v) {
    for (const int parent : {tree_parent(v, n), second_tree_parent(v, n)}) {
      if (parent < 0 || parent / leaf == v / leaf) continue;
      ++in[std::size_t(parent / leaf)];
      ++out[std::size_t(v / leaf)];
    }
  }
  return std::max(*std::max_element(in.begin(), in.end()),
                  *std::max_element(out.begin(), out.end()));
}

Collective ring_all_reduce(const Fabric& f, Bytes size, bool fold) {
  const int n = f.ranks();
  Collective c;
  if (n <= 1) return c;
  c.steps = 2 * (n - 1);
  c.sent_by_rank = sent_in_all_reduce(f, size, AllReduceKind::ring);
  add_rounds(c.phases.emplace_back(), all_reduce_rounds(f, size), f, fold);
  return c;
}

Collective tree_all_reduce(const Fabric& f, Bytes size, bool fold) {
  Collective c;
  if (f.ranks() <= 1) return c;
  const Bytes half = size / 2.0;
  c.steps = 2 * (ceil_log2(f.nodes) + f.ranks_per_node - 1);
  const int busiest = f.nodes > 1 ? busiest_tree_node(f.nodes) : 0;
  const TreePhase phase = tree_phase(f, size, busiest);
  const Seconds latency = phase.latency;
  c.sent_by_rank = sent_in_all_reduce(f, size, AllReduceKind::tree);
  if (fold) {
    NetworkProblem& p = c.phases.emplace_back();
    if (f.nodes > 1) add_folded_hop(p, f.nic, latency, half, std::uint32_t(busiest));
    if (f.has_spine())
      add_folded_hop(p, f.uplink(), latency, half,
                     std::uint32_t(busiest_tree_leaf(f.nodes, f.leaf_nodes)));
    if (f.ranks_per_node > 1) add_folded_hop(p, f.peer_of_sum(), latency, size);
    p.repeat = 2;
    return c;
  }
  for (const bool down : {false, true}) {
    NetworkProblem& p = c.phases.emplace_back();
    FabricLinks links = add_links(p.network, f, f.peer_of_sum());
    const auto add_edge = [&](int child, int parent, Bytes bytes) {
      const PathId route = down ? add_route(p.network, links, parent, child)
                                : add_route(p.network, links, child, parent);
      p.graph.add({.delay = latency, .size = bytes, .path = route}, {});
    };
    const int g = f.ranks_per_node;
    for (int node = 0; node < f.nodes; ++node) {
      for (int r = 1; r < g; ++r) add_edge(node * g + r, node * g + r - 1, size);
      for (const int parent : {tree_parent(node, f.nodes), second_tree_parent(node, f.nodes)})
        if (parent >= 0) add_edge(node * g, parent * g, half);
    }
  }
  return c;
}

Collective hierarchical_all_reduce(const Fabric& f, Bytes size, bool fold) {
  const int g = f.ranks_per_node, n = f.nodes;
  Collective c;
  if (f.ranks() <= 1) return c;
  const Bytes shard = size / double(g), piece = shard / double(n);
  c.steps = 2 * (g - 1) + 2 * (n - 1);
  c.sent_by_rank = sent_in_all_reduce(f, size, AllReduceKind::hierarchical);
  add_call(c, f);
  if (fold) {
    if (g > 1) {
      add_folded_hop(c.phases.emplace_back(), f.peer, f.peer_latency, shard);
      c.phases.back().repeat = 2 * (g - 1);  // reduce-scatter before, all-gather after
    }
    if (n > 1) {
      add_folded_hop(c.phases.emplace_back(), f.one_out(), f.nic_latency, piece, std::uint32_t(g));
      c.phases.back().repeat = 2 * (n - 1);
    }
    return c;
  }
  NetworkProblem& p = c.phases.emplace_back();
  FabricLinks links = add_links(p.network, f);
  std::vector<ActivityId> done(std::size_t(f.ranks()));
  const auto in_nodes = [&](bool first) {
    for (int node = 0; g > 1 && node < n; ++node) {
      std::vector<int> members;
      std::vector<ActivityId> start;
      for (int r = 0; r < g; ++r) {
        members.push_back(node * g + r);
        if (!first && n > 1) start.push_back(done[std::size_t(members.back())]);
      }
      const auto last =
          add_ring(p, links, f, members,
                   {.chunk = shard, .peer_delay = f.peer_latency, .rounds = g - 1}, start);
      for (std::size_t r = 0; r < last.size(); ++r) done[std::size_t(members[r])] = last[r];
    }
  };
  if (n == 1) {  // reduce-scatter and all-gather are one ring of twice the rounds
    add_ring(p, links, f, all_ranks(f),
             {.chunk = shard, .peer_delay = f.peer_latency, .rounds = 2 * (g - 1)}, {});
    return c;
  }
  in_nodes(true);
  for (int r = 0; r < g; ++r) {
    std::vector<int> members;
    std::vector<ActivityId> start;
    for (int node = 0; node < n; ++node) {
      members.push_back(node * g + r);
      if (g > 1) start.push_back(done[std::size_t(members.back())]);
    }
    const auto last =
        add_ring(p, links, f, members,
                 {.chunk = piece, .nic_delay = f.nic_latency, .rounds = 2 * (n - 1)}, start);
    for (std::size_t i = 0; i < last.size(); ++i) done[std::size_t(members[i])] = last[i];
  }
  in_nodes(false);
  return c;
}

namespace {

/// Every rank's shard up to the switches while the sum comes down; above a leaf there is one flow
/// of each shard.
void add_switch_phase(NetworkProblem& p, const Fabric& f, Bytes shard, bool fold) {
  const auto ranks = std::uint32_t(f.ranks_per_node);
  const Seconds there_and_back = 2 * f.nic_latency;
  if (fold) {
    add_folded_hop(p, f.one_out(), there_and_back, shard, ranks);
    return;
  }
  const FabricLinks links = add_links(p.network, f);
  const auto add = [&](LinkId link) {
    p.graph.add({.delay = there_and_back,
                 .size = shard,
                 .path = p.network.add_path({link}),
                 .multiplicity = ranks},
                {});
  };
  for (const auto* of_kind : {&links.nic_out, &links.nic_in, &links.leaf_out, &links.leaf_in})
    for (const LinkId link : *of_kind) add(link);
}

}  // namespace

Collective in_network_all_reduce(const Fabric& f, Bytes size, bool fold) {
  const int g = f.ranks_per_node;
  if (f.nodes <= 1) return hierarchical_all_reduce(f, size, fold);
  Collective c;
  const Bytes shard = size / double(g);
  c.steps = 2 * (g - 1) + 2;
  c.sent_by_rank = sent_in_all_reduce(f, size, AllReduceKind::in_network);
  add_call(c, f);
  const auto in_nodes = [&] {
    if (g == 1) return;
    NetworkProblem& p = c.phases.emplace_back();
    if (fold) {
      add_folded_hop(p, f.peer, f.peer_latency, shard);
      p.repeat = g - 1;
      return;
    }
    FabricLinks links = add_links(p.network, f);
    for (int node = 0; node < f.nodes; ++node) {
      std::vector<int> members;
      for (int r = 0; r < g; ++r) members.push_back(node * g + r);
      add_ring(p, links, f, members,
               {.chunk = shard, .peer_delay = f.peer_latency, .rounds = g - 1}, {});
    }
  };
  in_nodes();
  add_switch_phase(c.phases.emplace_back(), f, shard, fold);
  in_nodes();
  return c;
}

namespace {

Seconds ring_time(const Fabric& f, Bytes size) { return time_of(f, all_reduce_rounds(f, size)); }

Bytes sent_in_ring(const Fabric& f, Bytes size) {
  const int n = f.ranks();
  return size / double(n) * double(2 * (n - 1));
}

/// busiest_tree_node(n) without building the trees: an inner node of one is a leaf of the other.
int flows_of_busiest(int nodes) { return nodes > 2 ? 2 : 1; }

Seconds tree_time(const Fabric& f, Bytes size) {
  const TreePhase phase = tree_phase(f, size, flows_of_busiest(f.nodes));
  return 2 * (phase.latency + phase.transfer);
}

Bytes sent_in_tree(const Fabric& f, Bytes size) {
  return f.nodes > 1 ? size / 2.0 * double(2 * busiest_tree_node(f.nodes)) : 2 * size;
}

Seconds hierarchical_time(const Fabric& f, Bytes size) {
  const int g = f.ranks_per_node, n = f.nodes;
  const Bytes shard = size / double(g);
  Seconds t = f.law().call;
  if (g > 1) t += 2 * (g - 1) * (f.peer_latency + shard / f.peer);
  if (n > 1) t += 2 * (n - 1) * (f.nic_latency + double(g) * (shard / double(n)) / f.one_out());
  return t;
}

Bytes sent_in_hierarchy(const Fabric& f, Bytes size) {
  const int g = f.ranks_per_node;
  const Bytes shard = size / double(g);
  return shard * double(2 * (g - 1)) + shard / double(f.nodes) * double(2 * (f.nodes - 1));
}

Seconds in_network_time(const Fabric& f, Bytes size) {
  const int g = f.ranks_per_node;
  if (f.nodes <= 1) return hierarchical_time(f, size);
  Seconds t = f.law().call + 2 * f.nic_latency + size / f.one_out();
  if (g > 1) t += 2 * (g - 1) * (f.peer_latency + size / double(g) / f.peer);
  return t;
}

Bytes sent_to_switches(const Fabric& f, Bytes size) {
  if (f.nodes <= 1) return sent_in_hierarchy(f, size);
  const int g = f.ranks_per_node;
  return size / double(g) * double(2 * (g - 1) + 1);
}

constexpr std::array kAllReduces{AllReduceAlgorithm{.kind = AllReduceKind::ring,
                                                    .automatic = true,
                                                    .in_network = false,
                                                    .graph = ring_all_reduce,
                                                    .time = ring_time,
                                                    .sent = sent_in_ring,
                                                    .nccl = {"NCCL_ALGO", "Ring"}},
                                 AllReduceAlgorithm{.kind = AllReduceKind::tree,
                                                    .automatic = true,
                                                    .in_network = false,
                                                    .graph = tree_all_reduce,
                                                    .time = tree_time,
                                                    .sent = sent_in_tree,
                                                    .nccl = {"NCCL_ALGO", "Tree"}},
                                 AllReduceAlgorithm{.kind = AllReduceKind::hierarchical,
                                                    .automatic = false,
                                                    .in_network = false,
                                                    .graph = hierarchical_all_reduce,
                                                    .time = hierarchical_time,
                                                    .sent = sent_in_hierarchy,
                                                    .nccl = {}},
                                 AllReduceAlgorithm{.kind = AllReduceKind::in_network,
                                                    .automatic = true,
                                                    .in_network = true,
                                                    .graph = in_network_all_reduce,
                                                    .time = in_network_time,
                                                    .sent = sent_to_switches,
                                                    .nccl = {"NCCL_COLLNET_ENABLE", "1"}}};

}  // namespace

std::span<const AllReduceAlgorithm> all_reduces() { return kAllReduces; }

const AllReduceAlgorithm& all_reduce_of(AllReduceKind kind) {
  const auto found = std::ranges::find(kAllReduces, kind, &AllReduceAlgorithm::kind);
  RECKON_CHECK(found != kAllReduces.end());
  return *found;
}

Bytes sent_in_all_reduce(const Fabric& f, Bytes size, AllReduceKind kind) {
  return f.ranks() > 1 ? all_reduce_of(kind).sent(f, size) : Bytes{};
}

TimedAllReduce all_reduce_time(const Fabric& f, Bytes size, AllReduceKind kind) {
  if (f.ranks() <= 1) return {};
  // Reduce-scatter, then all-gather, along the axes [Ying et al. 2018, Sec. 2.2].
  if (f.on_torus) return {AllReduceKind::ring, 2 * torus_gather_time(f, size)};
  return chosen_all_reduce(kAllReduces, f, kind,
                           [&](const AllReduceAlgorithm& each) { return each.time(f, size); });
}

}  // namespace reckon
