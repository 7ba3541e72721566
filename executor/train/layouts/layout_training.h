#pragma once
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"
#include "executor/comm/rank_groups.h"
#include "executor/train/step_runtime.h"
#include "executor/train/trainer.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// What one rank of a layout trains with, on CPUs.
struct LayoutTraining {
  std::unique_ptr<LayoutGroups> groups;  // nullptr: all ranks have the whole network
  RankShare share;
  std::unique_ptr<GradientExchange> exchange;
  std::unique_ptr<StepRuntime> runtime;  // goes before the exchange, which it may call
};

/// Of rank peers.rank() of the job's layout, whose ranks are those of `peers`; not for parameter
/// servers. Collective over them. `passes`: of one micro-batch; more than the layout's smaller ones
/// are accumulated. cannot_train() of the plan is empty. All arguments must outlive it. Throws
/// CommError; std::invalid_argument where the schedule does not go with so many micro-batches.
LayoutTraining make_layout_training(const PlannedWorkload& job, Communicator& peers,
                                    const RuntimeOptions& passes, Workers& workers);

}  // namespace reckon
