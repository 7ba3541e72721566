#pragma once
#include <array>
#include <optional>

#include "sim/forecast/forecast.h"

// The same job on spot nodes and on nodes on demand.
namespace reckon {

/// A number of the plan: as it is, and where spot nodes stop to be cheaper.
struct SpotLimit {
  Seconds is{};
  bool assumed = false;          // by the catalog, not the scenario
  std::optional<Seconds> turns;  // nullopt: spot is always cheaper in what was searched, or never
};

struct SpotComparison {
  Forecast on_demand;
  /// [saves][gone]: the program saves on a notice, or not; spot capacity is gone at times, as the
  /// plan has it, or always there. nullopt: the provider gives no notice, or there are no
  /// checkpoints, so that nothing can be saved; the plan says that capacity is always there.
  std::array<std::array<std::optional<Forecast>, 2>, 2> spot;
  bool saves = false;  // what the plan's program does
  /// Mean life of a spot node and mean time for which capacity is gone, the rest as planned, at
  /// which the median cost is that on demand; found by bisection in 1 min .. 100 d. A life counts
  /// as an exponential law's mean, whatever law the plan has. nullopt: no node is reclaimed;
  /// capacity is always there.
  std::optional<SpotLimit> life, gone;
  /// The plan's own case.
  const Forecast& planned() const { return *spot[saves ? 1 : 0][gone ? 1 : 0]; }
};

/// Plans of one scenario that differ in how its nodes are bought. Seed and replications are those
/// of `options`, or the first plan's; all cases have the same luck. Errors: those of make_forecast.
SpotComparison compare_spot(const Plan& on_demand, const Plan& spot, const NetworkModel& network,
                            ForecastOptions options);

}  // namespace reckon
