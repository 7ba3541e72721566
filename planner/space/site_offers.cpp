#include "planner/space/site_offers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/base/unit_text.h"
#include "sim/forecast/replicate.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"

namespace reckon::planner {
namespace {

constexpr const char* kNoPrice = "no price is known";
constexpr const char* kDearer = "the same machine is cheaper in another region";

class OfferFinder {
 public:
  OfferFinder(const Question& question, const Hardware& hardware, const Catalog& catalog,
              const std::vector<std::size_t>& fallbacks, HardwarePlan& on)
      : q_(question),
        hardware_(hardware),
        catalog_(catalog),
        fallbacks_(fallbacks),
        on_(on),
        made_so_(on.workers().pricing) {}

  std::vector<Offer> find(Rejections& left_out) {
    std::vector<Offer> all, offers;
    for (const CapacityType pricing : q_.may.pricing)
      for (const std::string& region : hardware_.regions)
        for (const std::string& zone : zones_of(region)) {
          const Offer offer = offer_in(region, zone, pricing);
          add_bounds(offer, all);
          if (pricing == CapacityType::spot) add_mixes(offer, all);
        }
    all = with_restarts(all);
    considered_ = all.size();
    const bool priced = needs_price(q_.objective) || q_.budget;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (priced && !all[k].known) {
        ++left_out[kNoPrice];
        continue;
      }
      bool dominated = false;
      for (std::size_t j = 0; j < all.size() && !dominated; ++j) {
        if (j == k || !dominates(all[j], all[k])) continue;
        dominated = !dominates(all[k], all[j]) || j < k;  // of equals the first
      }
      if (dominated)
        ++left_out[kDearer];
      else
        offers.push_back(all[k]);
    }
    return offers;
  }
  std::size_t considered() const { return considered_; }

 private:
  /// Is there a price for each thing that has one? A list price of nothing is none; what stands in
  /// the user's own cellar may cost nothing.
  static bool is_price(const PlannedPool& pool) {
    const std::int64_t machine = pool.price.machine.nano_usd_per_hour;
    const std::int64_t accelerators = pool.price.accelerators.nano_usd_per_hour;
    if (!pool.price.known || machine < 0 || accelerators < 0) return false;
    if (pool.price.as_of.empty()) return true;
    const bool apart = !pool.slice && pool.accelerator && pool.machine.accelerator.empty();
    return apart ? machine > 0 && accelerators > 0 : machine > 0 || accelerators > 0;
  }

  static HourlyRate whole_price(const PlannedPool& pool) {
    return {pool.price.machine.nano_usd_per_hour + pool.price.accelerators.nano_usd_per_hour};
  }
  static HourlyRate lowest_price(const PlannedPool& pool) {
    return pool.reservation ? std::min(whole_price(pool), pool.reservation->price)
                            : whole_price(pool);
  }

  /// What a reservation covers of one node it may not cover of all that the question allows.
  void price_beyond_reservation(Offer& offer) {
    const auto& prices = on_.file.scenario.prices;
    const int most = q_.may.nodes.back();
    if (!prices || prices->reserved.empty() || most < 2) return;
    PlannedPool& workers = on_.workers();
    const int usual = std::exchange(workers.nodes_max, most);
    planning::reprice(on_.plan, on_.file, catalog_);
    PlannedPool& pool = on_.workers();
    pool.nodes_max = usual;
    if (!pool.reservation) return;
    offer.reserved = pool.reservation->nodes;
    if (offer.reserved >= most) return;
    offer.known_beyond = is_price(pool);
    if (!offer.known_beyond) return;
    offer.pools[on_.worker] = whole_price(pool);
    offer.pools_lowest[on_.worker] = lowest_price(pool);
    offer.spreads[on_.worker] = pool.price.spread;
  }

  /// The zone that a candidate in the region has: the one that is tried, else the scenario's own.
  std::string zone_in(const std::string& region, const std::string& tried) const {
    const ClusterSpec& cluster = q_.file.scenario.cluster;
    const bool own =
        !q_.may.zone && hardware_.provider == cluster.provider && region == cluster.region;
    return own ? cluster.zone : tried;
  }

  /// Who makes the pool's nodes, and what they may be: "spot or on_demand by Karpenter".
  void set_maker(Offer& offer) const {
    const Plan& plan = on_.plan;
    std::vector<std::string> ways;
    const auto may_be = [&](const PlannedPool& pool) {
      offer.made_of[std::size_t(pool.pricing)] = true;
      const bool queued = pool.provisioning_model != ProvisioningModel::standard;
      std::string way(queued ? to_text(pool.provisioning_model) : to_text(pool.pricing));
      if (std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
    };
    may_be(plan.pools[on_.worker]);
    for (const std::size_t p : fallbacks_) may_be(plan.pools[p]);
    offer.made_by = fmt::format("{} by {}", fmt::join(ways, " or "),
                                called(q_.file.scenario.cluster.autoscaler));
    const auto& karpenter = plan.karpenter;
    const auto& made = plan.node_auto_provisioning;
    const bool replaces = (karpenter && !karpenter->do_not_disrupt) ||
                          (made && made->safe_to_evict && made->compute_class &&
                           made->compute_class->optimize_rule_priority);
    offer.of_gang = replaces ? 2 : 1;
  }

  Offer offer_in(const std::string& region, const std::string& zone, CapacityType pricing) {
    on_.plan.region = region;
    on_.plan.zone = zone_in(region, zone);
    if (!q_.may.as_scaled) {
      for (PlannedPool& pool : on_.plan.pools) pool.pricing = CapacityType::on_demand;
      on_.workers().pricing = pricing;
    }
    planning::reprice(on_.plan, on_.file, catalog_);
    Offer offer;
    offer.region = region;
    offer.zone = zone;
    offer.pricing = q_.may.as_scaled ? made_so_ : pricing;
    if (q_.may.as_scaled) set_maker(offer);
    offer.known = true;
    for (const PlannedPool& pool : on_.plan.pools) {
      offer.known = offer.known && is_price(pool);
      offer.pools.push_back(whole_price(pool));
      offer.pools_lowest.push_back(lowest_price(pool));
      offer.spreads.push_back(pool.price.spread);
    }
    offer.storage = on_.plan.storage_per_gb;
    price_beyond_reservation(offer);
    const auto quota = [&](std::optional<CapacityType> type) {
      return quota_for(q_, hardware_.provider, region, hardware_.accelerator, type);
    };
    offer.quota = quota(std::nullopt);
    for (const CapacityType type :
         {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
      offer.quota_of_type[std::size_t(type)] = quota(type);
    return offer;
  }

  /// A spot offer in all mixes that may be.
  void add_mixes(const Offer& spot, std::vector<Offer>& all) {
    std::vector<BaseShare> bases = q_.may.bases;
    bases.insert(bases.begin(), BaseShare{});
    std::vector<std::string> fallbacks{""};
    if (hardware_.slice.empty())
      fallbacks.insert(fallbacks.end(), q_.may.fallbacks.begin(), q_.may.fallbacks.end());
    for (const BaseShare& base : bases)
      for (const std::string& fallback : fallbacks) {
        if (base.share == 0 && fallback.empty()) continue;
        Offer mixed = spot;
        if (mix(base, fallback, mixed)) all.push_back(std::move(mixed));
      }
  }
  std::vector<std::string> zones_of(const std::string& region) const {
    const auto zones = hardware_.zones.find(region);
    return zones == hardware_.zones.end() ? std::vector<std::string>{""} : zones->second;
  }

  /// An offer with all bounds of its pool that may be. Slices have none.
  void add_bounds(const Offer& offer, std::vector<Offer>& all) const {
    if (q_.may.bounds.empty()) return all.push_back(offer);
    for (const PoolBounds& bounds : q_.may.bounds) {
      const bool can =
          bounds.text.empty() ||
          (hardware_.slice.empty() && (!bounds.autoscaled() || on_.plan.service.kubernetes));
      if (!can) continue;
      all.push_back(offer);
      all.back().bounds = bounds;
    }
  }

  /// False: nothing of the machine is reserved.
  bool mix(const BaseShare& base, const std::string& fallback, Offer& offer) {
    const std::string region = offer.region, zone = offer.zone;
    if (base.share > 0) {
      const Offer other = offer_in(region, zone, base.bought);
      if (base.bought == CapacityType::reserved && !on_.workers().reservation) return false;
      offer.mix.base_reserved = other.reserved;
      offer.known_beyond = offer.known_beyond && other.known_beyond;
      offer.known = offer.known && other.known;
      offer.mix.share = base.share;
      offer.mix.base = base.bought;
      offer.mix.base_price = other.pools[on_.worker];
      offer.mix.base_lowest = other.pools_lowest[on_.worker];
      offer.mix.base_spread = other.spreads[on_.worker];
    }
    if (fallback.empty()) return true;
    const Offer other = offer_in(region, zone, CapacityType::on_demand);
    offer.known = offer.known && other.known;
    offer.known_beyond = offer.known_beyond && other.known_beyond;
    offer.mix.patience = *parse_duration(fallback);
    offer.mix.patience_text = fallback;
    offer.mix.fallback_price = other.pools[on_.worker];
    offer.mix.fallback_lowest = other.pools_lowest[on_.worker];
    offer.mix.fallback_spread = other.spreads[on_.worker];
    return true;
  }

  /// No dearer at any quantile of the price. Two markets draw apart, so that in a replication the
  /// other may be cheaper, but not by more than luck.
  static bool no_dearer(HourlyRate a, const PriceSpread& of_a, HourlyRate b,
                        const PriceSpread& of_b) {
    const auto at = [](HourlyRate rate, double end) {
      return double(rate.nano_usd_per_hour) * std::pow(end, kScoreLimit);
    };
    return a <= b && at(a, of_a.low) <= at(b, of_b.low) && at(a, of_a.high) <= at(b, of_b.high);
  }

  /// Nowhere dearer, nowhere scarcer: then every life costs no more there, with the same draws.
  static bool dominates(const Offer& a, const Offer& b) {
    if (a.pricing != b.pricing || a.known != b.known || a.quota < b.quota) return false;
    if (a.bounds.text != b.bounds.text || a.restart != b.restart) return false;
    for (std::size_t k = 0; k < a.quota_of_type.size(); ++k)
      if (a.quota_of_type[k] < b.quota_of_type[k]) return false;
    if (b.known_beyond && !a.known_beyond) return false;
    if (a.storage > b.storage) return false;
    const auto kind = [](const Mix& m) { return std::tuple(m.share, m.base, m.patience); };
    if (kind(a.mix) != kind(b.mix) || a.mix.base_lowest > b.mix.base_lowest ||
        a.mix.fallback_lowest > b.mix.fallback_lowest ||
        !no_dearer(a.mix.base_price, a.mix.base_spread, b.mix.base_price, b.mix.base_spread) ||
        !no_dearer(a.mix.fallback_price, a.mix.fallback_spread, b.mix.fallback_price,
                   b.mix.fallback_spread))
      return false;
    for (std::size_t p = 0; p < a.pools.size(); ++p)
      if (!no_dearer(a.pools[p], a.spreads[p], b.pools[p], b.spreads[p]) ||
          a.pools_lowest[p] > b.pools_lowest[p])
        return false;
    return true;
  }

  /// Each offer with each way to go on after a loss; of services that start all processes again,
  /// and of slices, full alone.
  std::vector<Offer> with_restarts(const std::vector<Offer>& offers) const {
    if (q_.may.restarts.empty()) return offers;
    const bool full_only = on_.plan.service.nodes_of_job || !hardware_.slice.empty();
    std::vector<Offer> all;
    for (const Offer& offer : offers)
      for (const RestartSpec& restart : q_.may.restarts) {
        if (full_only && restart.kind != RestartKind::full) continue;
        all.push_back(offer);
        all.back().restart = restart;
      }
    return all;
  }

  const Question& q_;
  const Hardware& hardware_;
  const Catalog& catalog_;
  const std::vector<std::size_t>& fallbacks_;
  HardwarePlan& on_;
  CapacityType made_so_;  // of the plan as it stands
  std::size_t considered_ = 0;
};

}  // namespace

FoundOffers find_offers(const Question& question, const Hardware& hardware, const Catalog& catalog,
                        const std::vector<std::size_t>& fallbacks, HardwarePlan& on) {
  OfferFinder finder(question, hardware, catalog, fallbacks, on);
  FoundOffers found;
  found.offers = finder.find(found.left_out);
  found.considered = finder.considered();
  return found;
}

}  // namespace reckon::planner
