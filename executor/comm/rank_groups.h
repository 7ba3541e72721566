#pragma once
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"
#include "sim/scenario/rank_places.h"

// The groups in which a rank exchanges under a layout, as the forecast counts them (RankGroups,
// sim/step/block_times.h).
namespace reckon {

/// Ranks of the job that differ from `rank` along one axis alone, itself among them, ascending.
enum class RankAxis {
  tensor,
  context,
  expert,        // of the data ranks those that share one set of experts out
  state,         // data x context: replicas of what is no expert
  expert_state,  // of those, the replicas of this rank's experts
  pipeline,
  model,  // tensor x context x pipeline: one copy of the model
};
std::vector<int> ranks_along(RankAxis axis, const Layout& layout, int rank);

/// Communicators of one rank, one for each axis. Of an axis of one rank: one that exchanges
/// nothing.
struct LayoutGroups {
  RankPlace place;
  std::unique_ptr<Communicator> tensor, context, expert, state, expert_state, pipeline, model;
  std::unique_ptr<Communicator>
      pipeline_back;  // the pipeline again, for gradients on their way back
};
/// Collective over the job's ranks, of which there are layout.accelerators(). Throws CommError.
LayoutGroups make_layout_groups(Communicator& job, const Layout& layout);

}  // namespace reckon
