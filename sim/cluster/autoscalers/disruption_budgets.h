#pragma once
#include <chrono>
#include <optional>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/scenario/spec/karpenter.h"

// Disruption budgets of Karpenter's NodePools [karpenter.sh, "Disruption", "NodePool Disruption
// Budgets"].
namespace reckon {

struct NodeCounts {
  int total = 0;       // nodes of the NodePool that are ready
  int disrupting = 0;  // of them, those that are going
};

/// Nodes that may still be disrupted for that reason: the least of the budgets that count, a share
/// rounded up, less those that are going already. No budgets given: one of 10 %. `begins`: the
/// date of time 0, which schedules need.
int allowed_disruptions(const std::vector<DisruptionBudget>& budgets, NodeCounts nodes,
                        DisruptionReason reason, std::optional<std::chrono::sys_seconds> begins,
                        SimTime now);

}  // namespace reckon
