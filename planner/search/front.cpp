#include "planner/search/front.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace reckon::planner {

namespace {

/// On the same nodes in the same place what is faster is cheaper too: the fastest of each.
std::vector<const Candidate*> fastest_of_each(const Space& space) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, int, int>, const Candidate*> by_nodes;
  for (const Candidate& c : space.candidates) {
    if (!std::isfinite(c.cost) || !std::isfinite(c.time)) continue;
    const Split& split = space.split(c);
    const Candidate*& fastest = by_nodes[{c.site, c.offer, split.nodes, split.parameter_servers}];
    if (fastest == nullptr || std::tie(c.time, c.split) < std::tie(fastest->time, fastest->split))
      fastest = &c;
  }
  std::vector<const Candidate*> out;
  for (const auto& [nodes, candidate] : by_nodes) out.push_back(candidate);
  return out;
}

}  // namespace

std::vector<Candidate> estimated_front(const Space& space, Outlook& outlook, std::size_t most,
                                       const Candidate* best) {
  struct Point {
    double time, cost;
    const Candidate* candidate;
  };
  std::vector<Point> order;
  for (const Candidate* c : fastest_of_each(space)) {
    const Promise promise = outlook.of(*c);
    if (std::isfinite(promise.time)) order.push_back({promise.time, promise.cost, c});
  }
  std::ranges::stable_sort(order, [](const Point& a, const Point& b) {
    return std::tie(a.time, a.cost) < std::tie(b.time, b.cost);
  });
  std::vector<Candidate> front;
  double least = std::numeric_limits<double>::infinity();
  const Promise at_best = best != nullptr ? outlook.of(*best) : Promise{};
  std::set<std::size_t> taken;
  for (const Point& p : order) {
    if (p.cost >= least) continue;
    least = p.cost;
    if (best != nullptr && p.time >= at_best.time && taken.empty()) {
      // Those next to it: the one before, the one in its place, and two behind.
      for (std::size_t k = front.size() - std::min<std::size_t>(front.size(), 1);
           k < front.size() + 3; ++k)
        taken.insert(k);
    }
    front.push_back(*p.candidate);
  }
  if (front.size() <= most || most < 2) return front;
  for (std::size_t k = 0; k < most; ++k) taken.insert(k * (front.size() - 1) / (most - 1));
  std::vector<Candidate> spread;
  for (const std::size_t k : taken)
    if (k < front.size()) spread.push_back(front[k]);
  return spread;
}

std::vector<Evaluated> pareto_front(const std::vector<Evaluated>& evaluated) {
  std::vector<const Evaluated*> order;
  for (const Evaluated& e : evaluated)
    if (e.refused.empty() && e.forecast.cost_usd && e.forecast.unfinished_share == 0)
      order.push_back(&e);
  std::ranges::sort(order, [](const Evaluated* a, const Evaluated* b) {
    const std::pair first{a->forecast.time_seconds.mean, a->forecast.cost_usd->mean};
    const std::pair second{b->forecast.time_seconds.mean, b->forecast.cost_usd->mean};
    return first != second ? first < second : texts(a->changes) < texts(b->changes);
  });
  std::vector<Evaluated> front;
  for (const Evaluated* e : order)
    if (front.empty() || e->forecast.cost_usd->mean < front.back().forecast.cost_usd->mean)
      front.push_back(*e);
  return front;
}

}  // namespace reckon::planner
