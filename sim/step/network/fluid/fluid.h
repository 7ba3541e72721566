#pragma once
#include <span>
#include <vector>

#include "sim/step/network/network.h"

// The fluid network model: bandwidth is divided like water, packets and protocols do not exist.
// Valid for transfers that are long against a round trip, on links whose flows a fair transport
// divides evenly.
namespace reckon {

/// One kind of flow that is in flight: `multiplicity` flows over `path`, each at most at `cap` (0:
/// uncapped).
struct FlowDemand {
  PathId path{};
  BytesPerSecond cap{};
  std::uint32_t multiplicity = 1;
};

/// The max-min fair rate of one flow of each demand: no flow can get more without taking from one
/// that has no more than itself [Bertsekas & Gallager, Data Networks, 2nd ed., 6.5.2].
/// Equivalently: every flow is at its cap or has a bottleneck, a full link on which nobody is
/// faster.
std::vector<BytesPerSecond> max_min_rates(const Network& network,
                                          std::span<const FlowDemand> flows);

}  // namespace reckon
