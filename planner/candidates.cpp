#include "planner/candidates.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/base/parallel.h"

namespace reckon::planner {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

double estimated_score(Objective objective, double time, double cost) {
  switch (objective) {
    case Objective::time:
    case Objective::p95_time:
      return time;
    case Objective::cost_time:
      return time * cost;
    case Objective::cost:
    case Objective::throughput_per_dollar:
    case Objective::cost_under_deadline:
    case Objective::p95_cost:
      return cost;
  }
  return cost;
}

Candidate candidate_of(const Question& question, const Site& site, const LeastFactors& least,
                       std::size_t shape_index, std::size_t offer_index) {
  const Shape& shape = site.shapes[shape_index];
  const Offer& offer = site.offers[offer_index];
  const Outside& outside = site.outside[std::size_t(shape.nodes)];
  Candidate c;
  c.shape = std::uint32_t(shape_index);
  c.offer = std::uint32_t(offer_index);
  const bool spot = offer.pricing == CapacityType::spot;
  const double stretch = spot ? outside.stretch_spot : outside.stretch_on_demand;
  c.time = outside.start_seconds + double(shape.steps) * shape.step_seconds * stretch;
  double rate = 0;
  for (std::size_t p = 0; p < offer.pools.size(); ++p)
    rate += double(offer.pools[p].nano_usd_per_hour) * 1e-9 / 3600 *
            (p == site.worker ? shape.nodes : shape.parameter_servers);
  c.cost = offer.known ? rate * c.time : kUnknown;
  c.estimate = estimated_score(question.objective, c.time, c.cost);
  const Bounds b = bounds_of(question, site, least, shape, offer);
  c.bound = b.score;
  c.proven_late = question.deadline && b.deadline > question.deadline->value;
  c.proven_dear = question.budget && b.budget > question.budget->value;
  return c;
}

/// Order of what is tried first. Equals stand in the order of what they are, so that neither the
/// catalog's order nor threads decide.
bool more_promising(const Question& question, const Candidate& a, const Candidate& b) {
  const auto key = [&](const Candidate& c) {
    const bool proven = c.proven_late || c.proven_dear;
    const bool late = question.deadline && c.time > question.deadline->value;
    const bool dear = question.budget && c.cost > question.budget->value;
    return std::tuple(proven, late || dear, c.estimate, c.time, c.site, c.shape, c.offer);
  };
  return key(a) < key(b);
}

}  // namespace

Space make_space(const Question& question, const Catalog& catalog, const NetworkModel& network,
                 const SpaceOptions& options) {
  Space space;
  const HardwareList hardware = hardware_for(question, catalog);
  space.sites.resize(hardware.kinds.size());
  parallel_for(hardware.kinds.size(), options.threads, [&](std::size_t k) {
    space.sites[k] = make_site(question, hardware.kinds[k], catalog, network);
  });
  if (hardware.nowhere > 0) {
    space.considered += std::int64_t(hardware.nowhere);
    space.rejected["no region is known to offer the machine"] += std::int64_t(hardware.nowhere);
  }
  Draws draws(options.seed, options.replications);
  for (std::size_t k = 0; k < space.sites.size(); ++k) {
    const Site& site = space.sites[k];
    space.considered += site.considered;
    for (const auto& [reason, count] : site.rejected) space.rejected[reason] += count;
    if (site.shapes.empty() || site.offers.empty()) continue;
    const LeastFactors least = least_factors(question, site, draws);
    for (std::size_t s = 0; s < site.shapes.size(); ++s)
      for (std::size_t o = 0; o < site.offers.size(); ++o) {
        if (std::int64_t{site.shapes[s].nodes} * site.hardware.per_node > site.offers[o].quota) {
          ++space.rejected["above the quota"];
          continue;
        }
        Candidate c = candidate_of(question, site, least, s, o);
        c.site = std::uint32_t(k);
        space.candidates.push_back(c);
      }
  }
  std::ranges::sort(space.candidates, [&](const Candidate& a, const Candidate& b) {
    return more_promising(question, a, b);
  });
  return space;
}

}  // namespace reckon::planner
