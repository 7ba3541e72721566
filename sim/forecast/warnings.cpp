#include "sim/forecast/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string newest_source(const Plan& plan) {
  std::string newest;
  for (const Source& s : plan.sources) newest = std::max(newest, s.retrieved);
  return newest;
}

int year_of(const std::string& iso_date) {
  const auto year = iso_date.size() >= 4 ? parse_integer(iso_date.substr(0, 4)) : parse_integer("");
  return year ? int(*year) : 0;
}

/// Ages are counted against the catalog's newest fact, not against today: a forecast does not
/// change by being run later.
void warn_of_old_prices(const Plan& plan, std::vector<std::string>& warnings) {
  const std::string newest = newest_source(plan);
  if (plan.prices_as_of.empty() || newest.empty()) return;
  if (year_of(newest) - year_of(plan.prices_as_of) >= 2)
    warnings.push_back(fmt::format(
        "the oldest price used is of {}; the catalog's newest facts are of {}: give your own "
        "prices under prices.rates",
        plan.prices_as_of, newest));
}

}  // namespace

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
  warn_of_old_prices(plan, warnings);
  return warnings;
}

}  // namespace reckon
