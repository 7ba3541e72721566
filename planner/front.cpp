#include "planner/front.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace reckon::planner {

std::vector<Candidate> estimated_front(const Space& space, std::size_t most) {
  std::vector<const Candidate*> order;
  for (const Candidate& c : space.candidates)
    if (std::isfinite(c.cost) && std::isfinite(c.time)) order.push_back(&c);
  std::ranges::sort(order, [](const Candidate* a, const Candidate* b) {
    return std::tuple(a->time, a->cost, a->site, a->shape, a->offer) <
           std::tuple(b->time, b->cost, b->site, b->shape, b->offer);
  });
  std::vector<Candidate> front;
  for (const Candidate* c : order)
    if (front.empty() || c->cost < front.back().cost) front.push_back(*c);
  if (front.size() <= most || most < 2) return front;
  std::vector<Candidate> spread;
  for (std::size_t k = 0; k < most; ++k)
    spread.push_back(front[k * (front.size() - 1) / (most - 1)]);
  return spread;
}

std::vector<Evaluated> pareto_front(const std::vector<Evaluated>& evaluated) {
  std::vector<const Evaluated*> order;
  for (const Evaluated& e : evaluated)
    if (e.refused.empty() && e.forecast.cost_usd && e.forecast.unfinished_share == 0)
      order.push_back(&e);
  std::ranges::sort(order, [](const Evaluated* a, const Evaluated* b) {
    return std::tuple(a->forecast.time_seconds.mean, a->forecast.cost_usd->mean, a->overrides) <
           std::tuple(b->forecast.time_seconds.mean, b->forecast.cost_usd->mean, b->overrides);
  });
  std::vector<Evaluated> front;
  for (const Evaluated* e : order)
    if (front.empty() || e->forecast.cost_usd->mean < front.back().forecast.cost_usd->mean)
      front.push_back(*e);
  return front;
}

}  // namespace reckon::planner
