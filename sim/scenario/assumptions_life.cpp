#include <algorithm>

#include "sim/scenario/assumption_table.h"

// The assumed numbers of the cluster's life: starts, notices, and what takes nodes away.
namespace reckon::planning {

/// What decides whether a save fits into the notice of a reclaim.
void add_notice(AssumptionTable& table, const Plan& plan) {
  const PlannedCheckpoint& checkpoint = plan.only_job().checkpoint;
  const bool spot = std::any_of(plan.pools.begin(), plan.pools.end(), [](const PlannedPool& p) {
    return p.pricing == CapacityType::spot;
  });
  if (!spot || plan.reclaim.notice.count() == 0 || checkpoint.notice.policy == OnNotice::none ||
      checkpoint.mode == CheckpointSpec::Mode::none)
    return;
  table.add(
      "time from a reclaim's notice until the program is told", "checkpoint.notice_reaction", "s",
      kLife, [](auto& p) -> auto& { return p.only_job().checkpoint.notice.reaction; });
  table.add(
      "spread of the nodes' times to write a checkpoint", "checkpoint.writer_spread", "fraction",
      kLife, [](auto& p) -> auto& { return p.only_job().checkpoint.notice.writer_spread; });
}

void add_start(AssumptionTable& table) {
  table.add(
      "pulling the container image", "job_start.image_pull", "s", kLife,
      [](auto& p) -> auto& { return p.job_start.image_pull; });
  table.add(
      "start of the framework", "job_start.framework_start", "s", kLife,
      [](auto& p) -> auto& { return p.job_start.framework_start; });
  table.add(
      "compilation before the first step", "job_start.compile", "s", kLife,
      [](auto& p) -> auto& { return p.job_start.compile; });
}

void add_egress(AssumptionTable& table, const Plan& plan) {
  if (plan.egress.checkpoints || plan.egress.data)
    table.add(
        "price of data that leaves the region", "egress.between_regions", "USD/GB", kLife,
        [](auto& p) -> auto& { return p.egress.between_regions; });
  if (plan.egress.zones > 1)
    table.add(
        "price of data that crosses zones", "egress.between_zones", "USD/GB", kLife,
        [](auto& p) -> auto& { return p.egress.between_zones; });
}

bool waits_for_all(const PlannedStrategy& strategy) { return traits_of(strategy.kind).gang; }

void add_disruptions(AssumptionTable& table, const Plan& plan) {
  if (plan.shortage.on) {
    table.add(
        "time for which spot capacity is there", "shortage.every", "s", kLife,
        [](auto& p) -> auto& { return p.shortage.every; });
    table.add(
        "time for which spot capacity is gone", "shortage.lasts", "s", kLife,
        [](auto& p) -> auto& { return p.shortage.lasts; });
  }
  if (plan.maintenance.on) {
    table.add(
        "time between two maintenance events of a node", "maintenance.every", "s", kLife,
        [](auto& p) -> auto& { return p.maintenance.every; });
    table.add(
        "duration of a maintenance event", "maintenance.duration", "s", kLife,
        [](auto& p) -> auto& { return p.maintenance.duration; });
  }
  if (plan.failures.on) {
    table.add(
        "mean time between failures of an accelerator", "failures.mtbf_per_accelerator", "s", kLife,
        [](auto& p) -> auto& { return p.failures.mtbf_per_accelerator; });
    table.add(
        "replacement of a failed node", "failures.repair", "s", kLife,
        [](auto& p) -> auto& { return p.failures.repair; });
    if (waits_for_all(plan.only_job().strategy)) {
      table.add(
          "failures in which the job hangs", "failures.hang_share", "fraction", kLife,
          [](auto& p) -> auto& { return p.failures.hang_share; });
      table.add(
          "time until a hang is found out", "failures.hang_detection", "s", kLife,
          [](auto& p) -> auto& { return p.failures.hang_detection; });
    }
  }
}

void add_prices(std::vector<PlanAssumption>& rows, const Plan& plan) {
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const NodePrice& price = plan.pools[i].price;
    if (!price.known || price.spread.certain()) continue;
    const double hour =
        double(price.machine.nano_usd_per_hour + price.accelerators.nano_usd_per_hour) * 1e-9;
    if (!(hour > 0)) continue;
    // A pool's own price times what the market's number is over its median.
    const auto set = [i, price](Plan& p, double factor) {
      NodePrice& now = p.pools[i].price;
      now.machine = scaled(price.machine, factor);
      now.accelerators = scaled(price.accelerators, factor);
      now.spread = PriceSpread{};
    };
    const std::string key = std::string(kPriceOf) + price.spread.market;
    const auto same = std::find_if(rows.begin(), rows.end(),
                                   [&](const PlanAssumption& a) { return a.key == key; });
    if (same == rows.end()) {
      rows.push_back({"price of " + price.spread.market, key, "USD/h", hour,
                      hour * price.spread.low, hour * price.spread.high, price.spread.source, kLife,
                      [set, hour](Plan& p, double value) { set(p, value / hour); }});
      continue;
    }
    same->low = std::min(same->low, same->value * price.spread.low);
    same->high = std::max(same->high, same->value * price.spread.high);
    same->set = [before = std::move(same->set), set, median = same->value](Plan& p, double value) {
      before(p, value);
      set(p, value / median);
    };
  }
}

void add_reclaim(std::vector<PlanAssumption>& rows, const Plan& plan) {
  if (!plan.reclaim.assumed_mean) return;
  const Fact<Seconds>& mean = *plan.reclaim.assumed_mean;
  rows.push_back(
      {"mean time until a spot node is reclaimed", "reclaim.mean", "s", mean.value.count(),
       mean.low.count(), mean.high.count(), mean.source, kLife, [](Plan& p, double value) {
         p.reclaim.law = ExponentialReclaim{Seconds{value}};
         p.reclaim.assumed_mean = Fact<Seconds>{Seconds{value}, p.reclaim.assumed_mean->source};
       }});
}

}  // namespace reckon::planning
