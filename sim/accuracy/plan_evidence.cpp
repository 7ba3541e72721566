#include "sim/accuracy/plan_evidence.h"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

/// Calibrations are the sources of what they measured (sim/calibration/calibration.cpp).
bool is_calibrated(const Plan& plan, const PlannedPool& pool) {
  const auto measured = [&](const Fact<double>& fact) {
    const auto index = static_cast<std::size_t>(fact.source);
    return index < plan.sources.size() && plan.sources[index].reference.starts_with("calibration ");
  };
  const Efficiency& e = pool.efficiency;
  return measured(e.memory) || measured(e.matmul) || measured(e.convolution) ||
         measured(e.attention);
}

bool computes(const PlannedPool& pool) {
  return (pool.role == Role::worker || pool.role == Role::chief) && pool.accelerator;
}

}  // namespace

bool takes_evidence(const Plan& plan) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  return workers != nullptr && workers->accelerator && !is_calibrated(plan, *workers);
}

void set_residual(Plan& plan, const Residual& residual) {
  // Of the time, where the residual is of the rate.
  const double median = std::exp(-residual.mean), width = std::exp(residual.half_width);
  for (PlannedPool& pool : plan.pools)
    if (computes(pool))
      pool.efficiency.step_spread =
          Fact<double>(median, median / width, median * width, pool.efficiency.memory.source);
}

std::optional<Residual> set_residual(Plan& plan, const Evidence& evidence,
                                     const NetworkModel& network) {
  if (!takes_evidence(plan)) return std::nullopt;
  const PlannedWorkload& job = plan.jobs.front();
  for (PlannedPool& pool : plan.pools)
    if (computes(pool)) pool.efficiency.step_spread.value = 1;
  const double share = device_share(estimate_step(plan, job, network));
  const Residual residual = evidence.residual(features_of(plan, job), share);
  set_residual(plan, residual);
  return residual;
}

}  // namespace reckon
