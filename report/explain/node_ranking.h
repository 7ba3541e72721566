#pragma once
#include <string>
#include <vector>

#include "executor/kubernetes/pods/node_probe.h"

namespace reckon {

/// One node's place among those that were probed.
struct RankedNode {
  std::string node;
  double step_seconds = 0;  // the median behind the warm-up; 0: it failed
  double slower = 0;        // than the median of all nodes, as a share of that
  bool stands_out = false;  // a gang would wait for it: slower by more than 5 %
  int steps = 0;
  std::string problem;
};
/// The fastest first, those that failed last. The first fifth of a node's steps, two at least, is
/// warm-up.
std::vector<RankedNode> ranked(const std::vector<kubernetes::ProbedNode>& nodes);
std::string node_table(const std::vector<RankedNode>& nodes);
std::string node_json(const std::vector<RankedNode>& nodes);

}  // namespace reckon
