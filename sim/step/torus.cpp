#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/step/collectives.h"

namespace reckon {
namespace {

/// The order in which a chunk visits the axes, rotated so that chunks start on different ones.
std::vector<std::size_t> axis_order(const std::vector<std::size_t>& axes, std::size_t chunk) {
  std::vector<std::size_t> order(axes);
  std::rotate(order.begin(), order.begin() + std::ptrdiff_t(chunk), order.end());
  return order;
}

/// Every chip's link in both directions of an axis, and a round's routes over them.
class UnfoldedAxis {
 public:
  UnfoldedAxis(Network& network, const Torus& torus, std::size_t axis) {
    int stride = 1;
    for (std::size_t a = 0; a < axis; ++a) stride *= torus.axes[a];
    const int k = torus.axes[axis];
    for (int chip = 0; chip < torus.chips(); ++chip) {
      const int position = chip / stride % k;
      if (position != 0) continue;
      torus.wraps ? add_closed_ring(network, torus, k) : add_ring_in_line(network, torus, k);
    }
  }
  const std::vector<PathId>& routes() const { return routes_; }

 private:
  void add_closed_ring(Network& network, const Torus& torus, int k) {
    for (int i = 0; i < 2 * k; ++i)
      routes_.push_back(network.add_path({network.add_link(torus.link)}));
  }
  /// 0, 2, 4, ... and back 5, 3, 1: neighbours in the ring are at most two links apart, each link
  /// is used once.
  void add_ring_in_line(Network& network, const Torus& torus, int k) {
    std::vector<LinkId> up, down;  // link i joins chips i and i + 1
    for (int i = 0; i + 1 < k; ++i) {
      up.push_back(network.add_link(torus.link));
      down.push_back(network.add_link(torus.link));
    }
    std::vector<int> ring;
    for (int i = 0; i < k; i += 2) ring.push_back(i);
    for (int i = k - 1 - (k % 2); i >= 1; i -= 2) ring.push_back(i);
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int from = ring[i], to = ring[(i + 1) % ring.size()];
      std::vector<LinkId> path;
      for (int at = from; at < to; ++at) path.push_back(up[std::size_t(at)]);
      for (int at = from; at > to; --at) path.push_back(down[std::size_t(at - 1)]);
      routes_.push_back(network.add_path(path));
    }
  }
  std::vector<PathId> routes_;
};

}  // namespace

int Torus::chips() const {
  return std::accumulate(axes.begin(), axes.end(), 1, std::multiplies<>());
}

Torus torus_of(const PlannedPool& pool) {
  RECKON_CHECK(pool.slice && pool.accelerator && pool.accelerator->peer_bandwidth);
  Torus t;
  t.axes = pool.slice->torus;
  t.wraps = pool.slice->wraps;
  const int dimensions = std::max(1, pool.accelerator->torus_dimensions);
  // A chip has two links an axis; the catalog gives all of them together, one direction.
  t.link = pool.accelerator->peer_bandwidth->value * pool.peer_link.efficiency.value /
           (2.0 * dimensions);
  t.latency = pool.peer_link.latency.value;
  return t;
}

Collective torus_all_reduce(const Torus& torus, Bytes size, bool fold) {
  Collective c;
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < torus.axes.size(); ++a)
    if (torus.axes[a] > 1) axes.push_back(a);
  if (axes.empty()) return c;

  NetworkProblem& p = c.phases.emplace_back();
  // By axis: the routes of all flows of a round. Folded: flows are alike, one stands for all.
  std::vector<std::vector<PathId>> routes(torus.axes.size());
  for (const std::size_t a : axes) {
    if (fold)
      routes[a] = {p.network.add_path({p.network.add_link(torus.link)})};
    else
      routes[a] = UnfoldedAxis(p.network, torus, a).routes();
  }
  const double ways = torus.wraps ? 2 : 1;
  for (std::size_t j = 0; j < axes.size(); ++j) {
    const auto order = axis_order(axes, j);
    std::vector<ActivityId> last;
    const auto rounds_along = [&](std::size_t axis, Bytes whole) {
      const int k = torus.axes[axis];
      const Activity send{.delay = torus.latency, .size = whole / double(k) / ways};
      for (int round = 0; round + 1 < k; ++round) {
        std::vector<ActivityId> flows;
        for (const PathId route : routes[axis]) {
          Activity flow = send;
          flow.path = route;
          flows.push_back(p.graph.add(flow, last));
        }
        last = flows.size() == 1 ? flows : std::vector{p.graph.barrier(flows)};
      }
      if (j == 0) c.steps += k - 1;
      c.sent_by_rank += whole / double(k) * double(k - 1);
    };
    Bytes left = size / double(axes.size());
    for (const std::size_t axis : order) {  // reduce-scatter
      rounds_along(axis, left);
      left = left / double(torus.axes[axis]);
    }
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {  // all-gather, in reverse
      left = left * double(torus.axes[*axis]);
      rounds_along(*axis, left);
    }
  }
  return c;
}

}  // namespace reckon
