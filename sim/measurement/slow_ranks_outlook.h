#pragma once
#include <optional>
#include <vector>

#include "sim/measurement/live_forecast.h"
#include "sim/measurement/slow_ranks.h"

namespace reckon {

/// How a run ends, by replication: seconds from its first start, and USD (empty: a price is
/// unknown).
struct RunEnds {
  std::vector<double> times, costs;
};

/// The ends of `now` where a slow rank is replaced by one that is as fast as the others of its
/// kind. All wait for the slowest in each step: of the steps to come (LiveEstimate::step) each is
/// shorter by what the rank takes longer for its own part; the other ranks' parts stay as they are.
/// `pause` comes first: the stop and the next start. Money is spent as fast as before. `elapsed`,
/// `spent`: until now.
RunEnds ends_with_replacement(const LiveEstimate& now, Seconds elapsed, std::optional<Usd> spent,
                              const SlowRank& slow, Seconds pause);

}  // namespace reckon
