#pragma once
#include <string>
#include <vector>

#include "sim/scenario/node_requirements.h"
#include "sim/scenario/resolve/draft.h"

// What Karpenter may launch where the draft's place is known.
namespace reckon::planning {

/// The machine as Karpenter would launch it there.
NodeChoice node_choice(const Draft& draft, const Machine& machine, CapacityType capacity);
/// Has it a price there, the user's or the catalog's?
bool is_sold(const Draft& draft, const Machine& machine, CapacityType capacity);
/// Reports a service without Karpenter, and a cluster without NodePools.
bool check_karpenter(Draft& draft);
/// Reports labels that no machine has, and schedules without a start.
bool check_karpenter_keys(Draft& draft, const KarpenterSpec& spec);
/// Reports a NodePool most of whose nodes expire before they are ready; warns where some do.
void check_expiry(Draft& draft, const NodePoolSpec& node_pool, const Fact<Seconds>& provisioning);

}  // namespace reckon::planning
