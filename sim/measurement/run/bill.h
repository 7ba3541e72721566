#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "sim/forecast/rates.h"
#include "sim/measurement/measurements.h"

namespace reckon {

/// What a run costs at the prices of its plan.
struct RunBill {
  NanoUsd total;  // == sum of parts
  std::array<NanoUsd, kCostParts> parts{};
  std::vector<std::pair<std::string, double>> node_hours;  // by pool, billed
};

/// By the rules of sim/cluster/billing.h. A node is charged from when it was asked for (where the
/// run does not say: from its first start) until the end of the run or until another was asked for
/// in its place; `idle` of that is while the job waited for nodes or to be started again. Not
/// known, so not left out: the time between the loss of a node and the request for the next.
/// The run must have ended.
RunBill bill_of(const RunRates& rates, const Measurements& run);

}  // namespace reckon
