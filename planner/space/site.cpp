#include "planner/space/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "planner/space/site_offers.h"
#include "sim/accuracy/plan_evidence.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/replicate.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"
#include "sim/step/step.h"

namespace reckon::planner {
namespace {

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
      if (on_.plan.pools[p].fallback_for == site_.worker) site_.fallbacks.push_back(p);
    site_.asynchronous = !on_.job().strategy.synchronous();
    FoundOffers found = find_offers(q_, site_.hardware, catalog_, site_.fallbacks, on_);
    site_.offers = std::move(found.offers);
    const auto places = std::int64_t(found.considered);
    Rejections by_split;
    find_splits(by_split);
    std::int64_t made = std::int64_t(site_.splits.size());
    for (const auto& [reason, count] : by_split) {
      site_.rejected[reason] += count * places;
      made += count;
    }
    for (const auto& [reason, count] : found.left_out)
      site_.rejected[reason] += count * std::int64_t(site_.splits.size());
    site_.considered = made * places;
    if (!site_.splits.empty() && !site_.offers.empty()) describe_life();
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

  void find_splits(Rejections& rejected) {
    if (q_.base.evidence != nullptr) set_memory_residual(on_.plan, *q_.base.evidence);
    const bool evidence = q_.base.evidence != nullptr && takes_evidence(on_.plan);
    const SplitSource source{q_, site_.hardware, network_, on_, site_.closest, evidence};
    site_.splits = whole_splits(source, rejected);
    for (Split& split : cut_splits(source, rejected)) site_.splits.push_back(split);
    const bool anywhere =
        std::ranges::any_of(site_.offers, [](const Offer& o) { return o.quota == INT_MAX; });
    if (anywhere || site_.offers.empty()) return;
    int most = 0;
    for (const Offer& offer : site_.offers) most = std::max(most, offer.quota);
    std::erase_if(site_.splits, [&](const Split& split) {
      const bool over = std::int64_t{split.nodes} * site_.hardware.per_node > most;
      if (over) ++rejected[kOverQuota];
      return over;
    });
  }

  /// What does not depend on the layout: starts, interruptions, what is assumed.
  void describe_life() {
    const auto largest = std::ranges::max_element(
        site_.splits, {}, [](const Split& s) { return std::pair(s.nodes, s.layout.expert); });
    int most = 0;
    for (const Split& split : site_.splits) most = std::max(most, split.nodes);
    site_.outside.resize(std::size_t(most) + 1);
    std::vector<bool> known(site_.outside.size());
    for (const Split& split : site_.splits) {
      if (known[std::size_t(split.nodes)]) continue;
      known[std::size_t(split.nodes)] = true;
      on_.take(split);
      site_.outside[std::size_t(split.nodes)] = outside();
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

  /// Around each split's own median: bounds hold for all, so down by the widest range, up by the
  /// narrowest.
  void set_range_of_steps() {
    if (q_.base.evidence == nullptr || !takes_evidence(on_.plan)) return;
    const auto [narrowest, widest] =
        std::ranges::minmax(site_.splits, {}, &Split::residual_half_width);
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
  CapacityType made_so_ = CapacityType::on_demand;  // of the plan as it stands
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
