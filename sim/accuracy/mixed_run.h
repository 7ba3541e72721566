#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "sim/accuracy/published_runs.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/scenario.h"

// Published runs of pipelines whose stages are on different accelerators.
namespace reckon {

bool is_mixed(const RunConfiguration& run);

/// Accelerators of the nodes of each stage, by their names in the catalog. The error says in a few
/// words what the row lacks.
using StageNodes = std::vector<std::vector<std::string>>;
tl::expected<StageNodes, std::string> stage_nodes_of(const RunConfiguration& run,
                                                     const Catalog& catalog);

/// Of a cluster with one pool a pool for each kind of accelerator, with as many nodes as the stages
/// have, and the stages of the strategy on them.
void place_stages(const StageNodes& stages, ClusterSpec& cluster, StrategySpec& strategy);

}  // namespace reckon
