#pragma once
#include <optional>
#include <string>

#include "sim/base/fact.h"
#include "sim/base/money.h"
#include "sim/scenario/spec/prices.h"

// What a plan's nodes and its data cost, with every price resolved.
namespace reckon {

/// How far a price may lie from the one that is known, as factors on it (5th and 95th percentile):
/// what spot markets do and how old the price is (sim/scenario/resolve/price_spread.h). All that is
/// bought in one market has one factor in a replication, whichever plan buys it.
struct PriceSpread {
  std::string market;        // "p4d.24xlarge on spot in us-east-1 (aws)"; "": certain, a contract's
  double low = 1, high = 1;  // factors
  SourceId source{};
  bool certain() const { return market.empty() || (low == 1 && high == 1); }
  friend bool operator==(const PriceSpread&, const PriceSpread&) = default;
};

/// What a node of a pool costs for an hour, by part; the sum is the price. Unknown: time is
/// forecast, cost is null.
struct NodePrice {
  bool known = true;
  HourlyRate machine;       // vCPU and memory
  HourlyRate accelerators;  // 0 where the machine's price covers them
  std::string as_of;        // oldest date among the prices used
  std::string source;       // "gcp catalog", "scenario prices.rates"
  PriceSpread spread;       // of all parts together
};

/// Nodes that are billed at a reservation's price: those of the slots below `nodes`. Slots are
/// filled from the lowest, so that up to so many nodes at once are.
struct PlannedReservation {
  int nodes = 0;
  HourlyRate price;              // of a whole node
  std::optional<Seconds> until;  // from the start; afterwards the pool's own price; nullopt: no end
  Seconds from{};  // after the start: its machines are not there before, and jobs wait for them
  /// Paid for every machine and all of its time from `from` to `until`, used or not (an up-front
  /// block, a commitment); else for what is used.
  bool whole = false;
  ReservationKind kind = ReservationKind::machines;
  Seconds ends_before{};           // block: its machines are taken so long before `until`
  std::optional<Seconds> term;     // commitment: its price is paid all of that time
  std::optional<HourlyRate> list;  // what a node costs without it; nullopt: not known
  /// When its machines go, from the start; nullopt: they stay.
  std::optional<Seconds> goes() const {
    if (kind != ReservationKind::block || !until) return std::nullopt;
    return *until - ends_before;
  }
};

/// What is paid for data that leaves a zone or a region [docs/models/cluster.md, Egress].
struct EgressRules {
  Fact<double> between_regions, between_zones;  // USD a GB (1e9 bytes)
  bool checkpoints = false, data = false;       // the bucket lies in another region
  int zones = 1;                                // over which the workers' nodes lie evenly
  bool any() const { return checkpoints || data || zones > 1; }
};

}  // namespace reckon
