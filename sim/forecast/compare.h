#pragma once
#include <optional>
#include <span>
#include <vector>

#include "sim/forecast/forecast.h"

// Candidates under common random numbers: replication k of each draws from the streams of the same
// (seed, k), so what both meet (a slow provisioning, a wrong efficiency) cancels out, and the
// difference of a pair is the plans' and not luck's [Law 2015, "Simulation Modeling and Analysis",
// 5th ed., Sec. 11.2].
namespace reckon {

/// Share of the pairs (a[k], b[k]) with a[k] < b[k]; a tie counts half, so that the shares of both
/// directions add up to one. Two that never finish are a tie. Both of one length, not empty.
double probability_less(std::span<const double> a, std::span<const double> b);

/// Quantiles of a[k] - b[k]; of two that never finish the difference is 0.
/// In the unit of a and b.
Quantiles paired_difference(std::span<const double> a, std::span<const double> b);

struct CandidateComparison {
  std::vector<Forecast> forecasts;
  /// [a][b]: how likely a is faster (cheaper) than b. nullopt: on the diagonal, where one of the
  /// two does not fit in memory, or where a price is unknown.
  std::vector<std::vector<std::optional<double>>> probability_faster, probability_cheaper;
  /// [a][b]: a minus b, in seconds and USD.
  std::vector<std::vector<std::optional<Quantiles>>> time_difference, cost_difference;
};

/// The forecasts must share seed and number of replications.
CandidateComparison compare(std::vector<Forecast> forecasts);

}  // namespace reckon
