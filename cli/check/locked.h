#pragma once
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "planner/lock/lock.h"
#include "report/check/check.h"
#include "sim/step/network/network.h"

namespace reckon::cli {

/// What `check` makes of a scenario that was loaded.
struct CheckedAnswer {
  std::vector<CheckedExpectation> expectations;
  std::optional<Quantiles> time_seconds, cost_usd;  // nullopt: it has none, or it never ends
};
CheckedAnswer check_answer(const LoadedScenario& loaded, const Sampling& sampling,
                           const NetworkModel& network);

planner::LockedForecast locked_forecast(const CheckedAnswer& answer, const Sampling& sampling);

/// How a scenario is checked: all stay.
struct CheckSetting {
  const ScenarioChanges& changes;
  const CatalogChoice& choice;
  const Sampling& sampling;
  const LoadedCatalog& catalog;
  const NetworkModel& network;
};

/// Adds to what was checked what changed since the lock, and what broke each expectation that
/// fails. Errors: the lock's own scenario is none, or a calibration of then does not lie over
/// today's catalog.
Expected<void> attribute_changes(const planner::Lock& lock, const CheckSetting& setting,
                                 const CheckedAnswer& today, CheckedScenario& checked);

/// The lock of a scenario as `check` answers it; `plan` adds its own. Errors: it is of a queue.
Expected<planner::Lock> lock_of_check(const std::string& file, const CheckSetting& setting,
                                      const LoadedScenario& loaded, const CheckedAnswer& answer);

}  // namespace reckon::cli
