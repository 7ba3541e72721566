#include "planner/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "sim/accuracy/plan_evidence.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/replicate.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/step/step.h"

namespace reckon::planner {
namespace {

constexpr const char* kNoPrice = "no price is known";
constexpr const char* kDearer = "the same machine is cheaper in another region";

class SiteMaker {
 public:
  SiteMaker(const Question& question, const Hardware& hardware, const Catalog& catalog,
            const NetworkModel& network)
      : q_(question), catalog_(catalog), network_(network), on_(question, hardware, catalog) {
    site_.hardware = hardware;
  }

  Site make() {
    if (const Diagnostics wrong = on_.make(); !wrong.empty()) return refused(wrong);
    site_.worker = on_.worker;
    site_.pools = int(on_.plan.pools.size());
    made_so_ = on_.workers().pricing;
    for (std::size_t p = 0; p < on_.plan.pools.size(); ++p)
      if (on_.plan.pools[p].stands_in_for == site_.worker) site_.stand_ins.push_back(p);
    site_.asynchronous = !on_.job().strategy.synchronous();
    find_offers();
    const std::int64_t places = std::int64_t(all_offers_);
    Rejections by_shape;
    find_shapes(by_shape);
    std::int64_t made = std::int64_t(site_.shapes.size());
    for (const auto& [reason, count] : by_shape) {
      site_.rejected[reason] += count * places;
      made += count;
    }
    for (const auto& [reason, count] : by_offer_)
      site_.rejected[reason] += count * std::int64_t(site_.shapes.size());
    site_.considered = made * places;
    if (!site_.shapes.empty() && !site_.offers.empty()) describe_life();
    return std::move(site_);
  }

 private:
  Site refused(const Diagnostics& problems) {
    const std::string why = problems.empty() ? "cannot be planned" : problems.front().what;
    site_.rejected[why] += 1;
    site_.considered = 1;
    site_.refused = problems;
    return std::move(site_);
  }

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
    offer.pools[site_.worker] = whole_price(pool);
    offer.pools_lowest[site_.worker] = lowest_price(pool);
    offer.spreads[site_.worker] = pool.price.spread;
  }

  /// The zone that a candidate in the region has: the one that is tried, else the scenario's own.
  std::string zone_in(const std::string& region, const std::string& tried) const {
    const ClusterSpec& cluster = q_.file.scenario.cluster;
    const bool own =
        !q_.may.zone && site_.hardware.provider == cluster.provider && region == cluster.region;
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
    may_be(plan.pools[site_.worker]);
    for (const std::size_t p : site_.stand_ins) may_be(plan.pools[p]);
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
      return quota_for(q_, site_.hardware.provider, region, site_.hardware.accelerator, type);
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
    if (site_.hardware.slice.empty())
      fallbacks.insert(fallbacks.end(), q_.may.fallbacks.begin(), q_.may.fallbacks.end());
    for (const BaseShare& base : bases)
      for (const std::string& fallback : fallbacks) {
        if (base.share == 0 && fallback.empty()) continue;
        Offer mixed = spot;
        if (mix(base, fallback, mixed)) all.push_back(std::move(mixed));
      }
  }
  std::vector<std::string> zones_of(const std::string& region) const {
    const auto zones = site_.hardware.zones.find(region);
    return zones == site_.hardware.zones.end() ? std::vector<std::string>{""} : zones->second;
  }

  /// An offer with all bounds of its pool that may be. Slices have none.
  void add_bounds(const Offer& offer, std::vector<Offer>& all) const {
    if (q_.may.bounds.empty()) return all.push_back(offer);
    for (const PoolBounds& bounds : q_.may.bounds) {
      const bool can =
          bounds.text.empty() ||
          (site_.hardware.slice.empty() && (!bounds.autoscaled() || on_.plan.service.kubernetes));
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
      offer.mix.base_price = other.pools[site_.worker];
      offer.mix.base_lowest = other.pools_lowest[site_.worker];
      offer.mix.base_spread = other.spreads[site_.worker];
    }
    if (fallback.empty()) return true;
    const Offer other = offer_in(region, zone, CapacityType::on_demand);
    offer.known = offer.known && other.known;
    offer.known_beyond = offer.known_beyond && other.known_beyond;
    offer.mix.patience = *parse_duration(fallback);
    offer.mix.patience_text = fallback;
    offer.mix.stand_in_price = other.pools[site_.worker];
    offer.mix.stand_in_lowest = other.pools_lowest[site_.worker];
    offer.mix.stand_in_spread = other.spreads[site_.worker];
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
        a.mix.stand_in_lowest > b.mix.stand_in_lowest ||
        !no_dearer(a.mix.base_price, a.mix.base_spread, b.mix.base_price, b.mix.base_spread) ||
        !no_dearer(a.mix.stand_in_price, a.mix.stand_in_spread, b.mix.stand_in_price,
                   b.mix.stand_in_spread))
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
    const bool full_only = on_.plan.service.nodes_of_job || !site_.hardware.slice.empty();
    std::vector<Offer> all;
    for (const Offer& offer : offers)
      for (const RestartSpec& restart : q_.may.restarts) {
        if (full_only && restart.kind != RestartKind::full) continue;
        all.push_back(offer);
        all.back().restart = restart;
      }
    return all;
  }

  void find_offers() {
    std::vector<Offer> all;
    for (const CapacityType pricing : q_.may.pricing)
      for (const std::string& region : site_.hardware.regions)
        for (const std::string& zone : zones_of(region)) {
          const Offer offer = offer_in(region, zone, pricing);
          add_bounds(offer, all);
          if (pricing == CapacityType::spot) add_mixes(offer, all);
        }
    all = with_restarts(all);
    all_offers_ = all.size();
    const bool priced = needs_price(q_.objective) || q_.budget;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (priced && !all[k].known) {
        ++by_offer_[kNoPrice];
        continue;
      }
      bool dominated = false;
      for (std::size_t j = 0; j < all.size() && !dominated; ++j) {
        if (j == k || !dominates(all[j], all[k])) continue;
        dominated = !dominates(all[k], all[j]) || j < k;  // of equals the first
      }
      if (dominated)
        ++by_offer_[kDearer];
      else
        site_.offers.push_back(all[k]);
    }
  }

  void find_shapes(Rejections& rejected) {
    if (q_.base.evidence != nullptr) set_memory_residual(on_.plan, *q_.base.evidence);
    const bool evidence = q_.base.evidence != nullptr && takes_evidence(on_.plan);
    const ShapeSource source{q_, site_.hardware, network_, on_, site_.closest, evidence};
    site_.shapes = whole_shapes(source, rejected);
    for (Shape& shape : cut_shapes(source, rejected)) site_.shapes.push_back(shape);
    const bool anywhere =
        std::ranges::any_of(site_.offers, [](const Offer& o) { return o.quota == INT_MAX; });
    if (anywhere || site_.offers.empty()) return;
    int most = 0;
    for (const Offer& offer : site_.offers) most = std::max(most, offer.quota);
    std::erase_if(site_.shapes, [&](const Shape& shape) {
      const bool over = std::int64_t{shape.nodes} * site_.hardware.per_node > most;
      if (over) ++rejected[kOverQuota];
      return over;
    });
  }

  /// What does not depend on the layout: starts, interruptions, what is assumed.
  void describe_life() {
    const auto largest = std::ranges::max_element(
        site_.shapes, {}, [](const Shape& s) { return std::pair(s.nodes, s.layout.expert); });
    int most = 0;
    for (const Shape& shape : site_.shapes) most = std::max(most, shape.nodes);
    site_.outside.resize(std::size_t(most) + 1);
    std::vector<bool> known(site_.outside.size());
    for (const Shape& shape : site_.shapes) {
      if (known[std::size_t(shape.nodes)]) continue;
      known[std::size_t(shape.nodes)] = true;
      on_.take(shape);
      site_.outside[std::size_t(shape.nodes)] = outside();
    }
    on_.take(*largest);
    on_.workers().pricing = q_.may.as_scaled ? made_so_ : riskiest(q_.may.pricing);
    set_range_of_steps();
    site_.assumptions = assumptions_of(on_.plan);
    std::erase_if(site_.assumptions,
                  [](const PlanAssumption& a) { return reckon::is_price(a); });  // the offers' own
    for (PlanAssumption& a : site_.assumptions) a.set = nullptr;
    site_.shortage = on_.plan.shortage;
    site_.free_within = on_.plan.billing.free_if_reclaimed_within;
    site_.image_pull = on_.plan.job_start.image_pull.value;
    site_.framework_start = on_.plan.job_start.framework_start.value;
  }

  /// Around each shape's own median: bounds hold for all, so down by the widest range, up by the
  /// narrowest.
  void set_range_of_steps() {
    if (q_.base.evidence == nullptr || !takes_evidence(on_.plan)) return;
    const auto [narrowest, widest] =
        std::ranges::minmax(site_.shapes, {}, &Shape::residual_half_width);
    set_step_factor(on_.plan, 1, std::exp(-widest.residual_half_width),
                    std::exp(narrowest.residual_half_width));
  }

  Outside outside() {
    const PlannedWorkload& job = on_.job();
    const JobStartRules& start = on_.plan.job_start;
    Outside o;
    const Seconds begin =
        start.image_pull.value + start.framework_start.value + start.compile.value;
    const Seconds node = on_.workers().capacity_wait.value + on_.workers().provisioning.value;
    o.start_seconds = (node + begin).count();
    o.node_seconds = node.count();
    const Seconds save = checkpoint_save_time(on_.plan, job);
    const Seconds again = node + begin + checkpoint_restore_time(on_.plan, job);
    const auto interruptions = [&](CapacityType pricing) {
      on_.workers().pricing = pricing;
      Interruptions by;
      by.save = save.count();
      by.restart = again.count();
      const Seconds mtti = mean_time_to_interruption(on_.plan, job);
      if (mtti >= Seconds::max() || !(mtti.count() > 0)) return by;
      by.every = mtti.count();
      if (job.checkpoint.mode == CheckpointSpec::Mode::interval)
        by.interval = job.checkpoint.interval.count();
      by.optimal = job.checkpoint.mode == CheckpointSpec::Mode::optimal;
      if (by.optimal) by.interval = optimal_checkpoint_interval(save, mtti).count();
      return by;
    };
    o.on_demand = interruptions(CapacityType::on_demand);
    o.spot = interruptions(CapacityType::spot);
    return o;
  }

  const Question& q_;
  const Catalog& catalog_;
  const NetworkModel& network_;
  HardwarePlan on_;
  Site site_;
  std::size_t all_offers_ = 0;
  CapacityType made_so_ = CapacityType::on_demand;  // of the plan as it stands
  Rejections by_offer_;
};

}  // namespace

double stretch_of(const Interruptions& by, double work_seconds) {
  if (std::isinf(by.every) || !(work_seconds > 0)) return 1;
  const bool saves = by.interval > 0 && by.interval < work_seconds;
  const double work = saves ? by.interval : work_seconds;
  const double save = saves ? by.save : 0;
  return by.every / work * std::exp(by.restart / by.every) * std::expm1((work + save) / by.every);
}

Interruptions interruptions_of(const Outside& outside, const Offer& offer, int nodes) {
  if (offer.pricing != CapacityType::spot) return outside.on_demand;
  const int base = base_nodes(offer, nodes);
  if (base == 0) return outside.spot;
  Interruptions by = outside.spot;
  const double always = 1 / outside.on_demand.every;
  const double rate = always + (1 / outside.spot.every - always) * (nodes - base) / nodes;
  by.every = rate > 0 ? 1 / rate : std::numeric_limits<double>::infinity();
  if (by.optimal && rate > 0)
    by.interval = optimal_checkpoint_interval(Seconds{by.save}, Seconds{by.every}).count();
  return by;
}

double wait_for_spot(const Site& site, const Offer& offer, int nodes) {
  if (!site.shortage.on || offer.pricing != CapacityType::spot) return 0;
  const double every = site.shortage.every.value.count(), lasts = site.shortage.lasts.value.count();
  double wait = lasts;  // what is left of an exponential time is as long as a whole one
  if (offer.mix.patience)
    wait =
        std::min(wait, offer.mix.patience->count() + site.outside[std::size_t(nodes)].node_seconds);
  return lasts / (every + lasts) * wait;
}

Site make_site(const Question& question, const Hardware& hardware, const Catalog& catalog,
               const NetworkModel& network) {
  return SiteMaker(question, hardware, catalog, network).make();
}

}  // namespace reckon::planner
