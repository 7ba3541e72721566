#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/step/network/all_reduces.h"
#include "sim/step/network/fabric_graph.h"
#include "sim/step/network/torus_times.h"

namespace reckon {
namespace {

/// The order in which a chunk visits the axes, rotated so that chunks start on different ones.
std::vector<std::size_t> axis_order(const std::vector<std::size_t>& axes, std::size_t chunk) {
  std::vector<std::size_t> order(axes);
  std::rotate(order.begin(), order.begin() + std::ptrdiff_t(chunk), order.end());
  return order;
}

std::vector<std::size_t> long_axes(const Fabric& f) {
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < f.axes.size(); ++a)
    if (f.axes[a].chips > 1) axes.push_back(a);
  return axes;
}

/// The group's part of a link, one direction.
BytesPerSecond link_of(const Fabric& f, const TorusAxis& axis) {
  return f.peer / double(axis.apart);
}

/// Every chip's link in both directions of an axis, and a round's routes over them.
class UnfoldedAxis {
 public:
  UnfoldedAxis(Network& network, const Fabric& group, const TorusAxis& axis)
      : n_(network), link_(link_of(group, axis)) {
    const int rings = group.ranks() / axis.chips;
    for (int ring = 0; ring < rings; ++ring)
      axis.closed ? add_closed_ring(axis.chips) : add_ring_in_line(axis.chips);
  }
  const std::vector<PathId>& routes() const { return routes_; }

 private:
  void add_closed_ring(int k) {
    for (int i = 0; i < 2 * k; ++i) routes_.push_back(n_.add_path({n_.add_link(link_)}));
  }
  /// 0, 2, 4, ... and back 5, 3, 1: neighbours in the ring are at most two links apart, each link
  /// is used once.
  void add_ring_in_line(int k) {
    FabricGraph line;
    const auto chip = line.add_devices(k);
    for (std::size_t i = 0; i + 1 < chip.size(); ++i) {
      line.connect(chip[i], chip[i + 1], n_.add_link(link_));
      line.connect(chip[i + 1], chip[i], n_.add_link(link_));
    }
    std::vector<int> ring;
    for (int i = 0; i < k; i += 2) ring.push_back(i);
    for (int i = k - 1 - (k % 2); i >= 1; i -= 2) ring.push_back(i);
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int from = ring[i], to = ring[(i + 1) % ring.size()];
      routes_.push_back(n_.add_path(line.route(chip[std::size_t(from)], chip[std::size_t(to)])));
    }
  }

  Network& n_;
  BytesPerSecond link_;
  std::vector<PathId> routes_;
};

/// Rounds along the axes, each of which begins when all flows of its chunk's last one have ended.
class TorusRounds {
 public:
  TorusRounds(const Fabric& group, bool fold) : f_(group), axes_(long_axes(group)) {
    NetworkProblem& p = c_.phases.emplace_back();
    routes_.resize(f_.axes.size());
    for (const std::size_t a : axes_) {
      if (fold)  // flows are alike, one stands for all
        routes_[a] = {p.network.add_path({p.network.add_link(link_of(f_, f_.axes[a]))})};
      else
        routes_[a] = UnfoldedAxis(p.network, f_, f_.axes[a]).routes();
    }
  }

  /// `size` bytes, in as many chunks as axes.
  void add(Bytes size, bool scatter) {
    for (std::size_t j = 0; j < axes_.size(); ++j) {
      const auto order = axis_order(axes_, j);
      last_.clear();
      Bytes left = size / double(axes_.size());
      for (const std::size_t axis : order) {  // reduce-scatter
        if (scatter) rounds_along(axis, left, j == 0);
        left = left / double(f_.axes[axis].chips);
      }
      for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {  // all-gather, in reverse
        left = left * double(f_.axes[*axis].chips);
        rounds_along(*axis, left, j == 0);
      }
    }
  }

  Collective done() { return std::move(c_); }

 private:
  void rounds_along(std::size_t a, Bytes whole, bool first_chunk) {
    const TorusAxis& axis = f_.axes[a];
    ActivityGraph& graph = c_.phases.back().graph;
    Activity flow{.delay = double(axis.apart) * f_.peer_latency,
                  .size = whole / double(axis.chips) / (axis.closed ? 2.0 : 1.0)};
    for (int round = 0; round + 1 < axis.chips; ++round) {
      std::vector<ActivityId> flows;
      for (const PathId route : routes_[a]) {
        flow.path = route;
        flows.push_back(graph.add(flow, last_));
      }
      last_ = flows.size() == 1 ? flows : std::vector{graph.barrier(flows)};
    }
    if (first_chunk) c_.steps += axis.chips - 1;
  }

  const Fabric& f_;
  std::vector<std::size_t> axes_;
  Collective c_;
  std::vector<std::vector<PathId>> routes_;  // by axis: of all flows of a round
  std::vector<ActivityId> last_;             // of the chunk
};

}  // namespace

Fabric torus_fabric(std::span<const int> axes, bool wraps, BytesPerSecond link, Seconds latency) {
  Fabric f;
  RECKON_CHECK(axes.size() <= f.axes.size());
  f.ranks_per_node = std::accumulate(axes.begin(), axes.end(), 1, std::multiplies<>());
  f.peer = link;
  f.peer_latency = latency;
  f.on_torus = true;
  for (std::size_t a = 0; a < axes.size(); ++a) f.axes[a] = {axes[a], 1, wraps && axes[a] > 1};
  return f;
}

Collective torus_all_reduce(const Fabric& f, Bytes size, bool fold) {
  if (f.ranks() <= 1) return {};
  TorusRounds rounds(f, fold);
  rounds.add(size, true);
  Collective c = rounds.done();
  c.sent_by_rank = sent_in_all_reduce(f, size, AllReduceKind::ring);
  return c;
}

Collective torus_all_gather(const Fabric& f, Bytes size, bool fold) {
  if (f.ranks() <= 1) return {};
  TorusRounds rounds(f, fold);
  rounds.add(size, false);
  Collective c = rounds.done();
  c.sent_by_rank = size / double(f.ranks()) * double(f.ranks() - 1);
  return c;
}

Collective torus_all_to_all(const Fabric& f, Bytes size) {
  Collective c;
  if (f.ranks() <= 1) return c;
  NetworkProblem& p = c.phases.emplace_back();
  Seconds latency{};
  for (const TorusAxis& axis : f.axes) latency += exchange_latency(f, axis);
  for (const TorusAxis& axis : f.axes) {
    if (axis.chips <= 1) continue;
    const PathId path = p.network.add_path({p.network.add_link(axis_bandwidth(f, axis))});
    p.graph.add({.delay = latency, .size = hops_of_a_chip(axis.chips) * size, .path = path});
  }
  c.steps = 1;
  c.sent_by_rank = size / double(f.ranks()) * double(f.ranks() - 1);
  return c;
}

Collective torus_send(const Fabric& f, Bytes size) {
  Collective c;
  if (f.ranks() <= 1) return c;
  int apart = 1;
  for (const std::size_t a : long_axes(f)) apart = std::max(apart, f.axes[a].apart);
  NetworkProblem& p = c.phases.emplace_back();
  const PathId path = p.network.add_path({p.network.add_link(f.peer / double(apart))});
  p.graph.add({.delay = double(apart) * f.peer_latency, .size = size, .path = path});
  c.steps = 1;
  c.sent_by_rank = size;
  return c;
}

}  // namespace reckon
