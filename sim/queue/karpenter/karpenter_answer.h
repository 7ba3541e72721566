#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/karpenter/karpenter_run.h"
#include "sim/queue/queue_costs.h"
#include "sim/scenario/resolve/autoscaling/karpenter_market.h"

// What a scenario gives Karpenter to choose from, and what came of it.
namespace reckon {

/// What the NodePools of a scenario admit, with prices.
using OffersOfKarpenter = std::function<Expected<KarpenterOffers>(const ScenarioFile& file)>;

/// A node has its machine's vCPUs and GPUs for pods, and the memory but VM_MEMORY_OVERHEAD_PERCENT
/// of it, 7.5 % ["Settings"]. What kubelet and daemons keep for themselves is not modelled.
KarpenterMarket market_of(const Scenario& scenario, const KarpenterOffers& offers);

/// Of the nodes of one type and capacity type.
struct NodesOfOffering {
  std::string type;
  CapacityType capacity = CapacityType::on_demand;
  double nodes = 0, node_hours = 0, usd = 0;
};
/// Means where there are several replications.
struct KarpenterAnswer {
  double nodes = 0, node_hours = 0;
  double empty = 0, several = 0, single = 0;  // nodes that consolidation took, by how
  double replacements = 0;                    // nodes that it made for them
  std::optional<double> reclaims;             // nodes that the provider took; where some are spot
  std::optional<double> drifted;  // nodes that were replaced for drift; where it is said
  std::optional<double> refused;  // requests for want of capacity; where some are spot
  double starved = 0;             // jobs that fit a node and never ended
  double hopeless = 0;            // of them, those that were always evicted before a checkpoint
  std::vector<NodesOfOffering> by_offering;  // the dearest in all first
};
KarpenterAnswer answer_of(const KarpenterRun& run, const KarpenterMarket& market);
KarpenterAnswer mean_of(std::span<const KarpenterAnswer* const> answers);

/// Nodes are paid from their request to their end; a job for the GPUs that it held.
QueueCharges charges_of(const KarpenterRun& run, const KarpenterMarket& market);

/// Why no node can ever hold a pod of the job, as a clause.
std::string why_no_node(const JobRequest& job, const KarpenterMarket& market);

}  // namespace reckon
