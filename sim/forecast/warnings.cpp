#include "sim/forecast/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {
bool prices_known(const Plan& plan) {
  return std::all_of(plan.pools.begin(), plan.pools.end(),
                     [](const PlannedPool& p) { return p.price.known; });
}

bool is_extrapolated(const Plan& plan) {
  return std::any_of(plan.pools.begin(), plan.pools.end(), [](const PlannedPool& p) {
    return p.accelerator && p.efficiency.accelerator != p.accelerator->name;
  });
}

std::vector<std::string> warnings_of(const Plan& plan, const Forecast& f) {
  std::vector<std::string> warnings = plan.warnings;
  if (f.unfinished_share > 0) {
    const auto runs = std::llround(f.unfinished_share * f.replications);
    warnings.push_back(fmt::format(
        "{} of {} replications never finished ({}): quantiles that reach them are unknown, and "
        "their cost is what was spent until they ended",
        runs, f.replications, f.unfinished_reason));
  }
  return warnings;
}

}  // namespace reckon
