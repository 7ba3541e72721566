#include "sim/forecast/spot.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <variant>

namespace reckon {
namespace {

constexpr Seconds kLeast{60}, kMost{100 * 86400.0};  // mean times to a reclaim that are looked at
constexpr int kReplicationsOfALimit = 200;

bool can_save(const Plan& plan) {
  return plan.reclaim.notice.count() > 0 &&
         std::ranges::any_of(plan.jobs, [](const PlannedWorkload& job) {
           return job.checkpoint.mode != CheckpointSpec::Mode::none;
         });
}

bool saves_on_notice(const Plan& plan) {
  return can_save(plan) && std::ranges::any_of(plan.jobs, [](const PlannedWorkload& job) {
           return job.checkpoint.mode != CheckpointSpec::Mode::none &&
                  job.checkpoint.notice.policy == OnNotice::save;
         });
}

Plan with_notice(Plan plan, bool saves) {
  for (PlannedWorkload& job : plan.jobs)
    job.checkpoint.notice.policy = saves ? OnNotice::save : OnNotice::none;
  return plan;
}

Plan with_life(Plan plan, Seconds mean) {
  plan.reclaim.law = ExponentialReclaim{mean};
  plan.reclaim.assumed_mean.reset();
  return plan;
}

Plan with_gone(Plan plan, Seconds lasts) {
  plan.shortage.lasts = Fact<Seconds>{lasts};
  return plan;
}

/// The median of a run that never ends is infinite.
double cost(const Forecast& f) {
  return std::isfinite(f.time_seconds.p50) ? f.cost_usd->p50
                                           : std::numeric_limits<double>::infinity();
}

/// Where `wins` changes between kLeast and kMost, to 5 %; nullopt: it does not.
std::optional<Seconds> turning(const std::function<bool(Seconds)>& wins) {
  constexpr double kEnough = 1.05;  // factor between the ends
  double low = kLeast.count(), high = kMost.count();
  const bool at_low = wins(kLeast);
  if (wins(kMost) == at_low) return std::nullopt;
  while (high / low > kEnough) {
    const double middle = std::sqrt(low * high);
    (wins(Seconds{middle}) == at_low ? low : high) = middle;
  }
  return Seconds{std::sqrt(low * high)};
}

}  // namespace

SpotComparison compare_spot(const Plan& on_demand, const Plan& spot, const NetworkModel& network,
                            ForecastOptions options) {
  options.seed = options.seed.value_or(on_demand.seed);
  options.replications = options.replications.value_or(on_demand.replications);
  options.assumption_effects = false;
  const auto forecast = [&](const Plan& plan) { return make_forecast(plan, network, options); };
  SpotComparison c;
  c.on_demand = forecast(on_demand);
  c.saves = saves_on_notice(spot);
  for (const bool saves : {false, true}) {
    if (saves && !can_save(spot)) continue;
    Plan plan = with_notice(spot, saves);
    if (plan.shortage.on) c.spot[saves ? 1 : 0][1] = forecast(plan);
    plan.shortage.on = false;
    c.spot[saves ? 1 : 0][0] = forecast(plan);
  }
  if (!std::holds_alternative<NoReclaim>(spot.reclaim.law))
    c.life = SpotLimit{spot.reclaim.assumed_mean ? spot.reclaim.assumed_mean->value : Seconds{},
                       spot.reclaim.assumed_mean.has_value(), std::nullopt};
  if (const auto* law = std::get_if<ExponentialReclaim>(&spot.reclaim.law)) c.life->is = law->mean;
  if (spot.shortage.on)
    c.gone = SpotLimit{spot.shortage.lasts.value, spot.shortage.lasts.assumed, std::nullopt};
  if (!c.on_demand.cost_usd || !c.planned().cost_usd) return c;

  options.replications = std::min(*options.replications, kReplicationsOfALimit);
  const double to_beat = cost(forecast(on_demand));
  if (c.life)
    c.life->turns =
        turning([&](Seconds mean) { return cost(forecast(with_life(spot, mean))) < to_beat; });
  if (c.gone)
    c.gone->turns =
        turning([&](Seconds lasts) { return cost(forecast(with_gone(spot, lasts))) < to_beat; });
  return c;
}

}  // namespace reckon
