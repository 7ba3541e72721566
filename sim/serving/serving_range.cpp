#include "sim/serving/serving_range.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/base/parallel.h"

namespace reckon {
namespace {

/// An assumed number that changes what a batch takes, and by how much: of its logarithm, from the
/// median to that end.
struct Lever {
  AssumptionOf<PlannedCluster> assumption;
  double at_low = 0, at_high = 0;
};

double log_time(const ServingPlan& plan) {
  return std::log(batch_time(plan, plan.batch_max).count());
}

std::vector<Lever> levers_of(const ServingPlan& plan) {
  constexpr double kNothing = 1e-9;  // of ln of a batch's time
  std::vector<Lever> levers;
  const double usual = log_time(plan);
  for (AssumptionOf<PlannedCluster>& assumption :
       assumptions_of_pass(plan.cluster, 0, plan.model, plan.precision)) {
    ServingPlan changed = plan;
    assumption.set(changed.cluster, assumption.low);
    Lever lever{.assumption = {}, .at_low = log_time(changed) - usual};
    assumption.set(changed.cluster, assumption.high);
    lever.at_high = log_time(changed) - usual;
    if (std::abs(lever.at_low) + std::abs(lever.at_high) < kNothing) continue;
    lever.assumption = std::move(assumption);
    levers.push_back(std::move(lever));
  }
  return levers;
}

/// `slower`: the end at which batches take longer.
ServingPlan at_end(const ServingPlan& plan, const std::vector<Lever>& levers, bool slower) {
  const auto effect = [&](const Lever& l) {
    return slower ? std::max(l.at_low, l.at_high) : -std::min(l.at_low, l.at_high);
  };
  double norm = 0;
  for (const Lever& l : levers) norm += effect(l) * effect(l);
  ServingPlan end = plan;
  if (norm <= 0) return end;
  for (const Lever& l : levers) {
    const double share = effect(l) / std::sqrt(norm);
    if (share <= 0) continue;
    const AssumptionOf<PlannedCluster>& a = l.assumption;
    const double bound = (l.at_high > l.at_low) == slower ? a.high : a.low;
    // As draws go (replicate.h): by ratio, or by difference where that has no sense.
    const bool by_ratio = a.value > 0 && bound > 0;
    a.set(end.cluster, by_ratio ? a.value * std::pow(bound / a.value, share)
                                : a.value + (bound - a.value) * share);
  }
  return end;
}

ServingEnd end_of(const ServingForecast& f) {
  return {f.batch_full, f.p50, f.p95, f.p99, f.replicas, f.refused_share, f.cost_usd};
}

}  // namespace

std::optional<ServingRange> serving_range(const ServingPlan& plan,
                                          std::optional<std::uint64_t> seed,
                                          std::optional<Seconds> trained_for) {
  const std::vector<Lever> levers = levers_of(plan);
  if (levers.empty()) return std::nullopt;
  ServingRange range;
  // Two lives, each with its own plan: nothing is shared but what is constant.
  const ServingPlan fast = at_end(plan, levers, false), slow = at_end(plan, levers, true);
  parallel_for(2, 2, [&](std::size_t k) {
    ServingEnd& end = k == 0 ? range.fast : range.slow;
    end = end_of(forecast_serving(k == 0 ? fast : slow, seed, trained_for));
  });
  return range;
}

}  // namespace reckon
