#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/step/network/network.h"

// Networks with activity graphs over them, shared by the tests and the benchmarks of the network
// models.
namespace reckon::cases {

struct Case {
  Network network;
  ActivityGraph graph;
};

/// Full-duplex NICs: two links a host.
struct Nics {
  std::vector<LinkId> out, in;
  Nics(Network& network, int hosts, BytesPerSecond capacity) {
    for (int h = 0; h < hosts; ++h) {
      out.push_back(network.add_link(capacity));
      in.push_back(network.add_link(capacity));
    }
  }
};

/// The same numbers with every standard library, unlike std:: distributions.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  std::size_t below(std::size_t n) { return std::size_t(bits_() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  double between(double low, double high) {
    return low + (high - low) * double(bits_() >> 11) * 0x1p-53;
  }

 private:
  std::mt19937_64 bits_;
};

/// W workers push `model`/P to each of P servers; when all have, all pull as much.
inline Case parameter_server_step(int workers, int servers, Bytes model, BytesPerSecond nic) {
  Case c;
  const Nics worker(c.network, workers, nic), server(c.network, servers, nic);
  const Bytes shard = model / double(servers);
  std::vector<ActivityId> pushes, pulls;
  for (const LinkId w : worker.out) {
    for (const LinkId s : server.in)
      pushes.push_back(c.graph.add({.size = shard, .path = c.network.add_path({w, s})}));
  }
  const ActivityId all = c.graph.barrier(pushes);
  for (const LinkId w : worker.in) {
    for (const LinkId s : server.out)
      pulls.push_back(c.graph.add({.size = shard, .path = c.network.add_path({s, w})}, {all}));
  }
  c.graph.barrier(pulls);
  return c;
}

/// The same step with the P like servers as one link of P times the capacity, and each worker's P
/// like flows as one.
inline Case folded_parameter_server_step(int workers, int servers, Bytes model,
                                         BytesPerSecond nic) {
  Case c;
  const Nics worker(c.network, workers, nic), bundle(c.network, 1, nic * double(servers));
  const Bytes shard = model / double(servers);
  const auto copies = std::uint32_t(servers);
  std::vector<ActivityId> pushes, pulls;
  for (const LinkId w : worker.out) {
    const PathId path = c.network.add_path({w, bundle.in[0]});
    pushes.push_back(c.graph.add({.size = shard, .path = path, .multiplicity = copies}));
  }
  const ActivityId all = c.graph.barrier(pushes);
  for (const LinkId w : worker.in) {
    const PathId path = c.network.add_path({bundle.out[0], w});
    pulls.push_back(c.graph.add({.size = shard, .path = path, .multiplicity = copies}, {all}));
  }
  c.graph.barrier(pulls);
  return c;
}

/// W workers, each on its own: compute, push to all P servers, pull from all, `steps` times.
/// Compute times differ by 10 % and starts are staggered, so that nearly every event changes the
/// rates.
inline Case asynchronous_parameter_server(int workers, int servers, int steps, Bytes model,
                                          BytesPerSecond nic, Seconds compute,
                                          std::uint64_t seed = 1) {
  Case c;
  Dice dice(seed);
  const Nics worker(c.network, workers, nic), server(c.network, servers, nic);
  const Bytes shard = model / double(servers);
  for (std::size_t w = 0; w < worker.out.size(); ++w) {
    std::vector<PathId> push, pull;
    for (std::size_t s = 0; s < server.out.size(); ++s) {
      push.push_back(c.network.add_path({worker.out[w], server.in[s]}));
      pull.push_back(c.network.add_path({server.out[s], worker.in[w]}));
    }
    const double start = compute.count() * double(w) / double(workers);
    ActivityId before = c.graph.add({.delay = Seconds{start}});
    for (int step = 0; step < steps; ++step) {
      const double factor = dice.between(0.9, 1.1);
      before = c.graph.add({.delay = compute * factor}, {before});
      for (const auto* paths : {&push, &pull}) {
        std::vector<ActivityId> transfers;
        for (const PathId path : *paths)
          transfers.push_back(c.graph.add({.size = shard, .path = path}, {before}));
        before = c.graph.barrier(transfers);
      }
    }
  }
  return c;
}

/// Ring all-reduce over `ranks`, `rounds` of its 2 (N - 1) rounds; each round waits for the chunk
/// of the one before.
inline Case ring(int ranks, int rounds, Bytes model, BytesPerSecond nic, Seconds alpha) {
  Case c;
  const Nics rank(c.network, ranks, nic);
  const std::size_t n = rank.out.size();
  std::vector<PathId> to_next;
  for (std::size_t i = 0; i < n; ++i)
    to_next.push_back(c.network.add_path({rank.out[i], rank.in[(i + 1) % n]}));
  std::vector<ActivityId> before, now(n);
  for (int r = 0; r < rounds; ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      const Activity send{.delay = alpha, .size = model / double(ranks), .path = to_next[i]};
      now[i] = r == 0 ? c.graph.add(send) : c.graph.add(send, {before[i], before[(i + n - 1) % n]});
    }
    before = now;
  }
  return c;
}

/// A flat ring over `nodes` x `per_node` ranks: inside a node over the accelerators' own links,
/// between nodes over the node's one NIC.
inline Case hierarchical_ring(int nodes, int per_node, int rounds, Bytes model,
                              BytesPerSecond inside, BytesPerSecond nic, Seconds alpha) {
  Case c;
  const int ranks = nodes * per_node;
  const Nics accelerator(c.network, ranks, inside), node(c.network, nodes, nic);
  std::vector<PathId> to_next;
  for (int i = 0; i < ranks; ++i) {
    const int j = (i + 1) % ranks, from = i / per_node, to = j / per_node;
    const LinkId out = accelerator.out[std::size_t(i)], in = accelerator.in[std::size_t(j)];
    to_next.push_back(from == to ? c.network.add_path({out, in})
                                 : c.network.add_path({out, node.out[std::size_t(from)],
                                                       node.in[std::size_t(to)], in}));
  }
  const std::size_t n = to_next.size();
  std::vector<ActivityId> before, now(n);
  for (int r = 0; r < rounds; ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      const Activity send{.delay = alpha, .size = model / double(ranks), .path = to_next[i]};
      now[i] = r == 0 ? c.graph.add(send) : c.graph.add(send, {before[i], before[(i + n - 1) % n]});
    }
    before = now;
  }
  return c;
}

/// Independent flows between random pairs of hosts with unequal NICs; 30 % have a cap. `window`:
/// all start in it.
inline Case churn(int hosts, int flows, Seconds window, std::uint64_t seed) {
  Case c;
  Dice dice(seed);
  std::vector<LinkId> out, in;
  for (int h = 0; h < hosts; ++h) {
    const BytesPerSecond nic{1.25e9 * dice.between(0.5, 1.5)};
    out.push_back(c.network.add_link(nic));
    in.push_back(c.network.add_link(nic));
  }
  for (int f = 0; f < flows; ++f) {
    const std::size_t from = dice.below(out.size()),
                      to = (from + 1 + dice.below(out.size() - 1)) % out.size();
    const double cap = dice.below(10) < 3 ? dice.between(1e7, 4e8) : 0;
    c.graph.add({.delay = window * dice.between(0, 1),
                 .size = Bytes{dice.between(1e6, 2e8)},
                 .path = c.network.add_path({out[from], in[to]}),
                 .cap = BytesPerSecond{cap}});
  }
  return c;
}

/// Anything goes: unequal links, paths of 1 to 4 of them, caps, delays, multiplicities,
/// dependencies, barriers.
inline Case anything(int links, int paths, int activities, std::uint64_t seed) {
  Case c;
  Dice dice(seed);
  std::vector<LinkId> all;
  for (int l = 0; l < links; ++l)
    all.push_back(c.network.add_link(BytesPerSecond{dice.between(1e8, 2e9)}));
  std::vector<PathId> path;
  for (int p = 0; p < paths; ++p) {
    const std::size_t hops = std::min<std::size_t>(1 + dice.below(4), all.size());
    for (std::size_t h = 0; h < hops; ++h) std::swap(all[h], all[h + dice.below(all.size() - h)]);
    path.push_back(c.network.add_path(std::span(all).first(hops)));
  }
  for (int a = 0; a < activities; ++a) {
    std::vector<ActivityId> after;
    for (std::size_t n = a == 0 ? 0 : dice.below(4); n > 0; --n) {
      const ActivityId b{std::uint32_t(dice.below(std::size_t(a)))};
      if (std::find(after.begin(), after.end(), b) == after.end()) after.push_back(b);
    }
    if (dice.one_in(12)) {
      c.graph.barrier(after);
      continue;
    }
    Activity activity;
    if (dice.one_in(2)) activity.delay = Seconds{dice.between(0, 1)};
    if (!dice.one_in(8)) activity.size = Bytes{dice.one_in(4) ? 1e8 : dice.between(0, 3e8)};
    activity.path = path[dice.below(path.size())];
    if (dice.one_in(3)) activity.cap = BytesPerSecond{dice.between(1e7, 1e9)};
    if (dice.one_in(4)) activity.multiplicity = std::uint32_t(1 + dice.below(5));
    c.graph.add(activity, after);
  }
  return c;
}

}  // namespace reckon::cases
