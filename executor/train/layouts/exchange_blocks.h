#pragma once
#include <vector>

#include "executor/comm/zero_shards.h"
#include "executor/train/parameters.h"
#include "executor/train/recipe/schedule.h"
#include "sim/model/graph.h"

// The blocks in which ZeRO exchanges a network's state, and when passes use them.
namespace reckon {

/// The groups of the network's layers (first_of_groups) that have parameters in `layout`; of each
/// its experts, whose replicas are others, by themselves. Copies of other stages' weights are in
/// none: they come anew in each step.
std::vector<ZeroBlock> exchange_blocks(const ModelGraph& model, const ParameterLayout& layout);

/// A block's parameters are used from action `first` to action `last` of a pass, both among them.
struct BlockUse {
  std::size_t block = 0, first = 0, last = 0;
  friend bool operator==(const BlockUse&, const BlockUse&) = default;
};
/// Of the actions [`from`, `actions`) of the schedule, in the order of their begins: those of a
/// block's own layers, and those of layers that are tied to it. A block that is used again by the
/// time when it would be gathered once more, at the begin of the use before, stays: it has one use.
std::vector<BlockUse> block_uses(const RankModel& model, const ParameterLayout& layout,
                                 const std::vector<ZeroBlock>& blocks, const Schedule& schedule,
                                 std::size_t actions, std::size_t from = 0);

}  // namespace reckon
