#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/life/life.h"
#include "sim/scenario/plan.h"

// Machines that were bought beforehand: what they cost in all, and how much of it the run uses.
namespace reckon {

struct PurchaseForecast {
  std::string pool, machine;
  ReservationKind kind = ReservationKind::machines;
  int nodes = 0;
  double usd_per_hour = 0;          // of one node
  std::optional<Seconds> time;      // for which it is paid; nullopt: for what is used
  std::optional<double> total_usd;  // of all nodes in that time, used or not
  std::optional<double> used;       // mean share of it that the run uses
  double used_usd = 0;              // what the run uses, at its price: mean
  /// Share of the term above which a commitment is cheaper than on demand: its price over the list
  /// price. nullopt: the list price is not known, or it is no commitment.
  std::optional<double> break_even;
  double outlived = 0;  // share of the replications that its machines' end interrupted
};

/// Of the plan's reservations, in the order of the pools. `lives` are the forecast's.
std::vector<PurchaseForecast> purchases_of(const Plan& plan, const std::vector<LifeResult>& lives);

/// What has to be said of it wherever its price is shown. "": nothing.
std::string text_of(const PurchaseForecast& purchase);
/// Whether that stands among the forecast's warnings: a commitment goes on after the run, a run may
/// go on after its block.
bool is_warned_of(const PurchaseForecast& purchase);

}  // namespace reckon
