#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/life/life.h"
#include "sim/scenario/plan.h"

// What a forecast says of the prices that it stands on.
namespace reckon {

struct Forecast;

/// A price of the plan: of a market's nodes, or of a pool whose price is certain.
struct PriceForecast {
  std::string what;                            // "p4d.24xlarge on spot in us-east-1 (aws)"
  bool certain = false;                        // a contract's, or a user's own
  double usd_per_hour = 0, low = 0, high = 0;  // of a node: median, 5th and 95th percentile
  std::string as_of, source;                   // of the price; of its range
  /// Mean of a run at this price: the part of its bill that is proportional to it. 0: part of the
  /// nodes is reserved, so no part is.
  double usd = 0;
};

/// Fills in Forecast::prices and cost_at_medians_usd. Prices of the plan must be known; `lives` are
/// the forecast's, in the order of their replications.
void summarize_prices(const Plan& plan, const std::vector<LifeResult>& lives, Forecast& forecast);

/// At which price of an hour two plans cost the same on average, all other prices at their medians:
/// with a and b what is paid at that price p and A and B all that is paid,
///   p* = p (1 + (B - A) / (a - b)).
struct RankTurn {
  PriceForecast price;
  double usd_per_hour = 0;  // p*
  double chance = 0;        // probability that the price lies beyond it
  bool dearer = true;       // the rank turns above it; else below
};
/// Of the cheaper plan's prices the one that most likely turns the rank; nullopt: none does at any
/// price above 0, or a cost is unknown.
std::optional<RankTurn> rank_turn(const Forecast& cheaper, const Forecast& other);

}  // namespace reckon
