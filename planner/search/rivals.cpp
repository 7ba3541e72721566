#include "planner/search/rivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

namespace reckon::planner {
namespace {

bool within_quota(const Question& q, const RankedPlan& p) {
  Offer offer = p.offer;
  const auto quota = [&](std::optional<CapacityType> type) {
    return quota_for(q, p.hardware.provider, offer.region, p.hardware.accelerator, type);
  };
  offer.quota = quota(std::nullopt);
  for (const CapacityType type :
       {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
    offer.quota_of_type[std::size_t(type)] = quota(type);
  return within_quotas(offer, p.split, p.hardware.per_node);
}

/// Of all nodes for an hour; nullopt: a price is unknown.
std::optional<NanoUsd> hour_of_all_nodes(const Plan& plan) {
  NanoUsd sum;
  for (const PlannedPool& pool : plan.pools) {
    if (!pool.price.known) return std::nullopt;
    sum += NanoUsd{pool.nodes_max * (Int128{pool.price.machine.nano_usd_per_hour} +
                                     pool.price.accelerators.nano_usd_per_hour)};
  }
  return sum;
}

/// Of one life: what lives longer is too dear to be lived again with every factor that is tried.
constexpr double kMostEvents = 3000;

/// What tells one rival from another: of those alike in it the first stands for all.
using RivalKind = std::tuple<std::uint32_t, std::string, int, StrategyKind>;
RivalKind kind_of(const Space& space, const Candidate& c) {
  const Split& split = space.split(c);
  return {c.site, bought_text(space.offer(c), split.nodes), split.nodes, split.kind};
}

/// Picks rivals from all candidates, which stand most promising first.
class LeverRivals {
 public:
  LeverRivals(const Question& question, const Space& space, const RankedPlan& chosen)
      : question_(question), space_(space), chosen_(chosen) {}
  std::vector<LeverRival> found;

  /// Of each machine and way of buying the first.
  template <class Predicate>
  void add_first_of_each(std::size_t most, Predicate is_wanted, const std::vector<Lever>& levers) {
    std::set<std::tuple<Provider, std::string, std::string, int, CapacityType>> seen;
    for (const Candidate& c : space_.candidates) {
      if (seen.size() == most) break;
      const Hardware& h = space_.site(c).hardware;
      if (may_win(c) && is_wanted(c) &&
          seen.emplace(h.provider, h.machine, h.accelerator, h.per_node, space_.offer(c).pricing)
              .second)
        add(c, levers);
    }
  }
  template <class Predicate>
  void add_first(std::size_t most, Predicate is_wanted, const std::vector<Lever>& levers) {
    std::set<RivalKind> seen{kind_of(space_, chosen_.result.candidate)};
    for (const Candidate& c : space_.candidates) {
      if (seen.size() > most) break;
      if (may_win(c) && is_wanted(c) && seen.insert(kind_of(space_, c)).second) add(c, levers);
    }
  }
  void add_least_bound(std::size_t most, const std::vector<Lever>& levers) {
    std::set<RivalKind> seen{kind_of(space_, chosen_.result.candidate)};
    while (seen.size() <= most) {
      const Candidate* least = nullptr;
      for (const Candidate& c : space_.candidates)
        if (may_win(c) && (least == nullptr || c.bound < least->bound) &&
            !seen.contains(kind_of(space_, c)))
          least = &c;
      if (least == nullptr) return;
      seen.insert(kind_of(space_, *least));
      add(*least, levers);
    }
  }

 private:
  bool may_win(const Candidate& c) const {
    return !c.proven_late && !c.proven_dear && std::isfinite(c.estimate) &&
           events_of(space_, c) <= kMostEvents;
  }
  void add(const Candidate& c, const std::vector<Lever>& levers) {
    for (LeverRival& r : found)
      if (r.plan.result.candidate.site == c.site && r.plan.result.candidate.split == c.split &&
          r.plan.result.candidate.offer == c.offer) {
        for (const Lever lever : levers)
          if (std::ranges::count(r.levers, lever) == 0) r.levers.push_back(lever);
        return;
      }
    Evaluated e;
    e.candidate = c;
    e.changes = changes_of(question_, space_, c);
    found.push_back({ranked(space_, std::move(e)), levers});
  }

  const Question& question_;
  const Space& space_;
  const RankedPlan& chosen_;
};

}  // namespace

RankedPlan ranked(const Space& space, Evaluated evaluated) {
  RankedPlan p;
  p.hardware = space.site(evaluated.candidate).hardware;
  p.split = space.split(evaluated.candidate);
  p.offer = space.offer(evaluated.candidate);
  p.result = std::move(evaluated);
  return p;
}

Expected<Plan> resolve(const Question& question, const RankedPlan& plan, const Catalog& catalog) {
  return plan_with(question, plan.result.changes, catalog);
}

bool same_hardware(const Hardware& a, const Hardware& b) {
  const auto key = [](const Hardware& h) {
    return std::tie(h.own, h.provider, h.machine, h.accelerator, h.slice, h.per_node);
  };
  return key(a) == key(b);
}

std::vector<RankedPlan> rivals_of(const Space& space, const std::vector<Evaluated>& finished,
                                  std::size_t most) {
  std::vector<RankedPlan> rivals;
  std::set<RivalKind> seen;
  for (std::size_t k = 1; k < finished.size() && rivals.size() < most; ++k) {
    const Evaluated& e = finished[k];
    if (!e.refused.empty() || !std::isfinite(e.score)) continue;
    if (seen.insert(kind_of(space, e.candidate)).second) rivals.push_back(ranked(space, e));
  }
  return rivals;
}

std::vector<LeverRival> lever_rivals(const Question& question, const Space& space,
                                     const RankedPlan& chosen) {
  LeverRivals rivals(question, space, chosen);
  const auto& own = chosen.split;
  const auto other_goods = [&](const Candidate& c) {
    return !same_goods(space.site(c).hardware, chosen.hardware) ||
           space.offer(c).pricing != chosen.offer.pricing;
  };
  const auto without_spot = [&](const Candidate& c) {
    return space.offer(c).pricing != CapacityType::spot;
  };
  const auto fewer = [&](const Candidate& c) { return space.split(c).nodes < own.nodes; };
  const auto more = [&](const Candidate& c) { return space.split(c).nodes > own.nodes; };
  const std::vector<Lever> prices{Lever::price_here, Lever::price_everywhere};
  const std::vector<Lever> others{Lever::reclaims, Lever::network};
  rivals.add_first_of_each(6, other_goods, prices);
  rivals.add_first_of_each(2, without_spot, {Lever::reclaims});
  rivals.add_first(1, fewer, others);
  rivals.add_first(1, more, others);
  rivals.add_least_bound(2, others);
  return std::move(rivals.found);
}

std::vector<RankedPlan> bought_otherwise(const Question& question, const RankedPlan& plan,
                                         const Catalog& catalog) {
  std::vector<RankedPlan> out;
  for (const CapacityType pricing : question.may.pricing) {
    std::optional<RankedPlan> cheapest;
    NanoUsd least;
    for (const std::string& region : plan.hardware.regions) {
      RankedPlan other = plan;
      other.offer.region = region;
      if (region != plan.offer.region) other.offer.zone.clear();
      if (const auto zones = plan.hardware.zones.find(region);
          region != plan.offer.region && zones != plan.hardware.zones.end())
        other.offer.zone = zones->second.front();
      other.offer.pricing = pricing;
      other.offer.mix = {};
      if (region == plan.offer.region &&
          bought_text(other.offer, plan.split.nodes) == bought_text(plan.offer, plan.split.nodes))
        continue;
      if (!within_quota(question, other)) continue;
      other.result = {};
      other.result.changes = changes_for(question, other.hardware, other.offer, other.split);
      const auto resolved = resolve(question, other, catalog);
      const auto price = resolved ? hour_of_all_nodes(*resolved) : std::nullopt;
      if (!price || (cheapest && *price >= least)) continue;
      least = *price;
      cheapest = std::move(other);
    }
    if (cheapest) out.push_back(std::move(*cheapest));
  }
  return out;
}

}  // namespace reckon::planner
