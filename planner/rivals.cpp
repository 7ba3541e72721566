#include "planner/rivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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
  return within_quotas(offer, p.shape, p.hardware.per_node);
}

/// Of all nodes for an hour; nullopt: a price is unknown.
std::optional<std::int64_t> hourly_nano_usd(const Plan& plan) {
  std::int64_t sum = 0;
  for (const PlannedPool& pool : plan.pools) {
    if (!pool.price.known) return std::nullopt;
    sum += pool.nodes_max *
           (pool.price.machine.nano_usd_per_hour + pool.price.accelerators.nano_usd_per_hour);
  }
  return sum;
}

}  // namespace

RankedPlan ranked(const Space& space, Evaluated evaluated) {
  RankedPlan p;
  p.hardware = space.site(evaluated.candidate).hardware;
  p.shape = space.shape(evaluated.candidate);
  p.offer = space.offer(evaluated.candidate);
  p.result = std::move(evaluated);
  return p;
}

Expected<Plan> resolve(const Question& question, const RankedPlan& plan, const Catalog& catalog) {
  auto file = read_with(question.base, plan.result.overrides);
  if (!file) return tl::unexpected(std::move(file.error()));
  return make_plan(*file, catalog);
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
  std::set<std::tuple<std::uint32_t, std::string, int, StrategyKind>> seen;
  for (std::size_t k = 1; k < finished.size() && rivals.size() < most; ++k) {
    const Evaluated& e = finished[k];
    if (!e.refused.empty() || !std::isfinite(e.score)) continue;
    const Shape& shape = space.shape(e.candidate);
    if (seen.emplace(e.candidate.site, bought_text(space.offer(e.candidate), shape.nodes),
                     shape.nodes, shape.kind)
            .second)
      rivals.push_back(ranked(space, e));
  }
  return rivals;
}

std::vector<RankedPlan> bought_otherwise(const Question& question, const RankedPlan& plan,
                                         const Catalog& catalog) {
  std::vector<RankedPlan> out;
  for (const CapacityType pricing : question.may.pricing) {
    std::optional<RankedPlan> cheapest;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
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
          bought_text(other.offer, plan.shape.nodes) == bought_text(plan.offer, plan.shape.nodes))
        continue;
      if (!within_quota(question, other)) continue;
      other.result = {};
      other.result.overrides = overrides_for(question, other.hardware, other.offer, other.shape);
      const auto resolved = resolve(question, other, catalog);
      const auto price = resolved ? hourly_nano_usd(*resolved) : std::nullopt;
      if (!price || *price >= least) continue;
      least = *price;
      cheapest = std::move(other);
    }
    if (cheapest) out.push_back(std::move(*cheapest));
  }
  return out;
}

}  // namespace reckon::planner
