#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/plan.h"

namespace reckon {

/// A pool's nodes while the job runs, and what one of them costs.
struct PoolRates {
  std::string pool;
  int nodes = 0;
  NodePrice price;
  std::optional<PlannedReservation> reservation;
  Seconds minimum_rental{};  // a node is billed for at least that
};

/// At what prices a run of the plan is billed: enough to make out its bill from its measurements.
struct RunRates {
  std::vector<PoolRates> pools;
  BillingRules billing;
  HourlyRate storage;  // of the checkpoints that are kept
};

/// Prices of the plan must be known. Nodes of a pool that scales are those that the strategy uses,
/// of several jobs the one that uses most of the pool; of another pool all that it has.
RunRates rates_of(const Plan& plan);

/// Of a model that reads token sequences, padding included; 0: of another.
std::int64_t tokens_per_sample(const PlannedWorkload& job);

}  // namespace reckon
