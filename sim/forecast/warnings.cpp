#include "sim/forecast/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

/// Memory changes no time: its effect is that a step that is forecast may not run at all.
void warn_of_tight_memory(const Plan& plan, const Forecast& f, std::vector<std::string>& warnings) {
  for (std::size_t k = 0; k < f.jobs.size(); ++k) {
    const MemoryEstimate& memory = f.jobs[k].memory;
    if (plan.jobs[k].same_as || !memory.fits() || memory.fits_at(kRiskOfAPlan)) continue;
    warnings.push_back(
        fmt::format("memory{} is tight: {} on each accelerator; a plan may have {:.0f} %",
                    f.jobs.size() > 1 ? " of job " + f.jobs[k].name : "", memory_text(memory),
                    100 * kRiskOfAPlan));
  }
}

}  // namespace

bool prices_known(const Plan& plan) {
  return std::all_of(plan.pools.begin(), plan.pools.end(),
                     [](const PlannedPool& p) { return p.price.known; });
}

bool is_extrapolated(const Plan& plan) {
  const auto undated = [&](SourceId id) {
    const auto source = std::size_t(id);
    return id != SourceId::user && source < plan.sources.size() &&
           plan.sources[source].retrieved.empty();
  };
  return std::any_of(plan.pools.begin(), plan.pools.end(), [&](const PlannedPool& p) {
    return p.accelerator && undated(p.efficiency.matmul.source);
  });
}

std::vector<std::string> warnings_of(const Plan& plan, const Forecast& f) {
  std::vector<std::string> warnings = plan.warnings;
  warn_of_tight_memory(plan, f, warnings);
  if (f.unfinished_share > 0) {
    const auto runs = std::llround(f.unfinished_share * f.replications);
    warnings.push_back(fmt::format(
        "{} of {} replications never finished ({}): quantiles that reach them are unknown, and "
        "their cost is what was spent until they ended",
        runs, f.replications, f.unfinished_reason));
  }
  for (const PurchaseForecast& purchase : f.purchases)
    if (is_warned_of(purchase)) warnings.push_back(text_of(purchase));
  return warnings;
}

}  // namespace reckon
