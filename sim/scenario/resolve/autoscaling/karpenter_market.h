#pragma once
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/money.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/planned/cluster.h"
#include "sim/scenario/scenario.h"

// What Karpenter may launch for jobs that share a cluster, of which no plan is made.
namespace reckon {

/// A machine under a capacity type that a NodePool admits, with its price.
struct KarpenterOffer {
  Machine machine;
  CapacityType capacity = CapacityType::on_demand;
  std::size_t node_pool = 0;
  HourlyRate price;
  Fact<Seconds> provisioning;         // from the request until a node is ready
  std::vector<std::string> values{};  // of its NodePool's requirements with minValues, in order
};
struct KarpenterOffers {
  std::vector<KarpenterOffer> offers;
  ReclaimSpec reclaim;  // of spot nodes: the scenario's law, or an exponential one of the catalog
  Seconds notice{};     // before a reclaim
  ShortageRules shortage{};           // of each machine's spot market; likewise
  std::vector<std::string> warnings;  // of prices
};

/// All machines with GPUs that the scenario's NodePools admit in its region, on demand and on spot,
/// at the user's prices or the catalog's. Errors: what Karpenter cannot be asked there; NodePools
/// that admit nothing, or GPUs of two kinds, as a job's length is said for one.
Expected<KarpenterOffers> karpenter_offers(const ScenarioFile& file, const Catalog& catalog);

}  // namespace reckon
