#pragma once
#include <string>

#include <tl/expected.hpp>

#include "sim/accuracy/run/plan.h"
#include "sim/scenario/scenario.h"

// Inside sim/accuracy/run: how a published run was split, where its row leaves things out.
namespace reckon {

/// Where nodes are and how many of their accelerators take part.
struct RunPlacement {
  int nodes = 1;
  int per_node = 1;
  double nodes_as_printed = 1;  // nodes of the row in one of ours
};

/// Samples of one accelerator in one pass.
double micro_batch_of(const RunConfiguration& run);

/// Error: its layout is not printed, or no strategy of ours is meant.
tl::expected<StrategySpec, std::string> strategy_of(const RunConfiguration& run,
                                                    const RunPlacement& at, bool tpu);

}  // namespace reckon
