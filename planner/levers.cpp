#include "planner/levers.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace reckon::planner {
namespace {

template <class T>
void scale(Fact<T>& fact, double factor) {
  fact.value = fact.value * factor;
  fact.low = fact.low * factor;
  fact.high = fact.high * factor;
}

/// Every age of a node at its reclaim divided by the factor.
void scale_reclaims(ReclaimRules& rules, double factor) {
  const double age = 1 / factor;
  if (rules.assumed_mean) scale(*rules.assumed_mean, age);
  if (auto* law = std::get_if<ExponentialReclaim>(&rules.law)) law->mean *= age;
  if (auto* law = std::get_if<WeibullReclaim>(&rules.law)) law->scale *= age;
  if (auto* law = std::get_if<BathtubReclaim>(&rules.law))
    for (Seconds* t : {&law->tau1, &law->tau2, &law->b, &law->limit}) *t *= age;
  for (std::vector<Seconds>& node : rules.trace)
    for (Seconds& t : node) t *= age;
  rules.trace_length *= age;
}

/// Workers' nodes that are bought as the choice's are.
bool is_bought_as(const PlannedPool& pool, const RankedPlan& chosen) {
  return pool.role == Role::worker && pool.pricing == chosen.offer.pricing;
}

}  // namespace

std::string_view to_text(Lever lever) {
  switch (lever) {
    case Lever::price_here:
      return "price_here";
    case Lever::price_everywhere:
      return "price_everywhere";
    case Lever::reclaims:
      return "reclaims";
    case Lever::network:
      return "network";
  }
  return "";
}

bool is_price(Lever lever) {
  return lever == Lever::price_here || lever == Lever::price_everywhere;
}

bool same_goods(const Hardware& a, const Hardware& b) {
  if (a.own || b.own) return a.own == b.own;
  if (a.provider != b.provider || a.accelerator != b.accelerator) return false;
  return !a.accelerator.empty() || a.machine == b.machine;
}

bool moves(const Plan& plan, const RankedPlan& of, const RankedPlan& chosen, Lever lever) {
  switch (lever) {
    case Lever::price_here:
    case Lever::price_everywhere:
      return same_goods(of.hardware, chosen.hardware) &&
             std::ranges::any_of(plan.pools,
                                 [&](const PlannedPool& p) { return is_bought_as(p, chosen); }) &&
             (lever == Lever::price_everywhere || of.offer.region == chosen.offer.region);
    case Lever::reclaims:
      return !std::holds_alternative<NoReclaim>(plan.reclaim.law) &&
             std::ranges::any_of(
                 plan.pools, [](const PlannedPool& p) { return p.pricing == CapacityType::spot; });
    case Lever::network:
      return true;
  }
  return false;
}

Plan with_lever(Plan plan, const RankedPlan& of, const RankedPlan& chosen, Lever lever,
                double factor) {
  if (!moves(plan, of, chosen, lever)) return plan;
  switch (lever) {
    case Lever::price_here:
    case Lever::price_everywhere:
      for (PlannedPool& pool : plan.pools) {
        if (!is_bought_as(pool, chosen)) continue;
        pool.price.machine = scaled(pool.price.machine, factor);
        pool.price.accelerators = scaled(pool.price.accelerators, factor);
        if (pool.reservation) pool.reservation->price = scaled(pool.reservation->price, factor);
      }
      break;
    case Lever::reclaims:
      scale_reclaims(plan.reclaim, factor);
      break;
    case Lever::network:
      for (PlannedPool& pool : plan.pools) scale(pool.machine.network, factor);
      break;
  }
  return plan;
}

}  // namespace reckon::planner
