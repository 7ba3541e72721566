#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/forecast/forecast.h"

// What other ways to go on after a loss would change: the whole forecast asked again, with few
// replications under the same draws, one change at a time.
namespace reckon {

struct RestartChange {
  std::string what;
  std::string set;          // what `--set '...'` makes it of the scenario; "": the plan as it is
  std::string plan_option;  // of `reckon plan` that searches it; "": outside of its space
  double seconds = 0;       // mean of a run
  std::optional<double> usd;
  double goodput = 0;        // mean, 0..1
  double interruptions = 0;  // of a mean run, a count
};

/// The plan as it is, and then what its job, its layout and its pools allow, shortest first. Empty
/// where next to nothing interrupts it, where its service or strategy has one way only, or where it
/// would take more work than the limits.
/// `regroup`: PlannedRestart::regroup of the catalog. The plan has one job and fits in memory.
std::vector<RestartChange> restarts_that_apply(const Plan& plan, const NetworkModel& network,
                                               const Fact<Seconds>& regroup);

}  // namespace reckon
