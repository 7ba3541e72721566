#pragma once
#include <string>
#include <vector>

#include "sim/queue/karpenter/karpenter_run.h"

namespace reckon {

/// Nodes that come and go, for pictures: a node stands in the first row of its instance type and
/// capacity type that is free, so a row shows one node after the other.
struct NodeRows {
  std::vector<NodeGroup> groups;   // of one row each
  std::vector<std::string> names;  // by group: "g5.xlarge", "g5.xlarge spot"
  std::vector<NodeStay> stays;     // from a node's request, by row
  std::vector<Holding> holdings;   // by row
};
/// Rows of one kind stand together. Nodes without GPUs have none.
NodeRows rows_of(const KarpenterRun& run, const KarpenterMarket& market);

}  // namespace reckon
